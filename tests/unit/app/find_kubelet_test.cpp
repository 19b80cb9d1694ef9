#include "app/find_kubelet.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "kube/api_server.hpp"

namespace evictd::app::find_kubelet_test {
namespace {

using fixture::value_of;
using BySignal = core::EvictionSettings::BySignal;

/// evictd's own configuration, by which the kubelet is asked; there are no processes.
config::AgentConfiguration asking(const std::string& url, const fixture::Tree& proc) {
  config::AgentConfiguration agent;
  agent.node.proc_mount = proc.path();
  agent.thresholds.configz = true;
  agent.pod_sources.kubelet_url = url;
  return agent;
}

}  // namespace

TEST_CASE("a kubelet that is asked says what it goes by") {
  const fixture::Tree proc;
  test::ApiServer server;
  server.then(test::answers(200, R"({"kubeletconfig": {"evictionHard": {"memory.available": "300Mi"}}})"));
  const auto found = value_of(find_kubelet({}, asking(server.url(), proc)));
  CHECK_FALSE(found.unknown);
  CHECK(found.sources.values.eviction.hard == BySignal{{"memory.available", "300Mi"}});
  CHECK(found.sources.documents == std::vector{server.url() + "/configz"});
  CHECK(server.lines() == std::vector<std::string>{"GET /configz"});
}

TEST_CASE("what a kubelet goes by that does not say so is unknown, and the reason is one line") {
  const fixture::Tree proc;
  test::ApiServer server;
  const auto why = [&](test::Handler handler) {
    server.then(std::move(handler));
    return value_of(find_kubelet_in_time({}, asking(server.url(), proc))).unknown.value_or("known");
  };
  const auto place = server.url() + "/configz";
  CHECK(why(test::refuses(403, "Forbidden", "evictd may not")) ==
        "the kubelet does not say what it goes by: " + place + ": 403 Forbidden: evictd may not");
  CHECK(why(test::answers(200, "no JSON")).starts_with(place + ": is not JSON"));
  CHECK(why(test::answers(200, std::string(std::size_t{2} << 20, ' '))).find(server.url()) != std::string::npos);
  CHECK(why([](test::Exchange& exchange) { exchange.hold(); }) ==
        "the kubelet does not say what it goes by: " + server.url() + ": no answer in time");
  server.stop_listening();
  CHECK(value_of(find_kubelet_in_time({}, asking(server.url(), proc))).unknown->find("refused") != std::string::npos);
}

TEST_CASE("a kubelet cannot be asked of whom it is not said where it is") {
  const fixture::Tree proc;
  CHECK(fixture::error_of(find_kubelet({}, asking("", proc))) ==
        "thresholds.configz: podSources.kubelet.url does not say whom to ask");
}

TEST_CASE("a file that is named is all there is, and its errors are the operator's") {
  const fixture::Tree tree{fixture::file("kubelet.yaml", "kind: Pod\n")};
  CHECK(fixture::error_of(find_kubelet(tree.path("kubelet.yaml"), asking("http://127.0.0.1:1", tree)))
            .find("kubelet.yaml:1") != std::string::npos);
}

}  // namespace evictd::app::find_kubelet_test
