#include "simulate/inspect.hpp"

#include <doctest/doctest.h>

#include <boost/json.hpp>

#include "fixture/pods.hpp"
#include "fixture/program.hpp"
#include "fixture/tree.hpp"

namespace json = boost::json;

namespace evictd::simulate::inspect_test {
namespace {

using fixture::container;
using fixture::operator""_GiB;

}  // namespace

TEST_CASE("a pod is rated by class, criticality, priority, sums and oom_score_adj") {
  auto pod = fixture::pod("a", {container("main", {{"memory", "1024Mi"}, {"cpu", "0.5"}}, {{"memory", "2Gi"}}),
                                container("helper", {{"memory", "512Mi"}})});
  pod.init_containers = {container("setup", {{"memory", "100Mi"}})};
  pod.priority = -5;
  CHECK(inspect(pod, 4_GiB) == json::parse(R"({
    "qosClass": "Burstable", "critical": false, "priority": -5,
    "requests": {"cpu": "500m", "memory": "1536Mi"}, "limits": {"memory": "2Gi"},
    "containers": [{"name": "main", "oomScoreAdj": 750}, {"name": "helper", "oomScoreAdj": 875},
                   {"name": "setup", "oomScoreAdj": 976}]})"));
}

TEST_CASE("a pod that asks for nothing has empty sums") {
  CHECK(inspect(fixture::pod("a"), 4_GiB) == json::parse(R"({
    "qosClass": "BestEffort", "critical": false, "priority": 0, "requests": {}, "limits": {},
    "containers": [{"name": "main", "oomScoreAdj": 1000}]})"));
}

TEST_CASE("one pod in a file gives an object, several give a list") {
  const std::string pod =
      "metadata: {name: a}\nspec: {containers: [{name: m, resources: {limits: {cpu: 1, memory: 1Gi}}}]}\n";
  const fixture::Tree tree{
      fixture::dir("pods", {fixture::file("one.yaml", pod), fixture::file("two.yaml", pod + "---\n" + pod)})};
  const auto expected = json::parse(R"({
    "qosClass": "Guaranteed", "critical": false, "priority": 0,
    "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"},
    "containers": [{"name": "m", "oomScoreAdj": -997}]})");

  const auto one = fixture::run_evictd({"inspect", "-f", tree.path("pods/one.yaml").string()});
  CHECK(one.exit_code == 0);
  CHECK(json::parse(one.out) == expected);
  const auto two = fixture::run_evictd({"inspect", "--file", tree.path("pods/two.yaml").string()});
  CHECK(two.exit_code == 0);
  CHECK(json::parse(two.out) == json::array{expected, expected});
}

TEST_CASE("the node's memory may be given, and is this machine's otherwise") {
  const fixture::Tree tree{fixture::file(
      "a.yaml", "metadata: {name: a}\nspec: {containers: [{name: m, resources: {requests: {memory: 1Gi}}}]}\n")};
  const auto adjust = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"inspect", "-f", tree.path("a.yaml").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = fixture::run_evictd(arguments);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out).at("containers").at(0).at("oomScoreAdj").as_int64();
  };
  CHECK(adjust({"--memory-capacity", "2Gi"}) == 500);
  CHECK(adjust({"--memory-capacity", "1Gi"}) == 3);
  CHECK(adjust({"--memory-capacity", "1Ei"}) == 999);
  CHECK(adjust({}) >= 3);
}

TEST_CASE("a pod that cannot be read, or a capacity that is none, is one line and exit code 2") {
  const fixture::Tree tree{fixture::file("a.yaml", "metadata: {name: a}\nspec: {}\n")};
  const auto file = tree.path("a.yaml").string();
  const auto bad_pod = fixture::run_evictd({"inspect", "-f", file});
  CHECK(bad_pod.exit_code == 2);
  CHECK(bad_pod.err == "evictd: " + file + ":2: spec: containers is missing\n");
  for (const auto& [capacity, message] :
       {std::pair{"x", "--memory-capacity: \"x\" is not a quantity such as 150Mi, 1.5G or 500"},
        std::pair{"0", "--memory-capacity: \"0\" must be more than zero"}}) {
    const auto outcome = fixture::run_evictd({"inspect", "-f", file, "--memory-capacity", capacity});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.err == std::string("evictd: ") + message + "\n");
  }
}

}  // namespace evictd::simulate::inspect_test
