#include "pods/annotated_spec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace evictd::pods::annotated_spec_test {
namespace {

core::Pod annotated(std::string spec) {
  return {.name_space = "default",
          .name = "a",
          .uid = "1",
          .annotations = {{std::string(pod_spec_annotation), std::move(spec)}},
          .priority = 7};
}

/// The text with each @ replaced by one number, COUNT times with another one each, separated by commas.
std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += ',';
    for (const char c : text) c == '@' ? all += std::to_string(i) : all += c;
  }
  return all;
}

}  // namespace

TEST_CASE("an annotated spec tells what CRI does not: volumes with their limits, requests, the grace period") {
  auto pod = annotated(R"({"terminationGracePeriodSeconds": 12,
    "containers": [{"name": "main", "resources": {"limits": {"ephemeral-storage": "20Mi"}}}],
    "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "10Mi"}}]})");
  std::vector<Error> warnings;
  CHECK(apply_annotated_spec(pod, warnings));
  CHECK(warnings.empty());
  REQUIRE(pod.volumes.size() == 1);
  CHECK(pod.volumes[0].size_limit == core::Quantity::bytes(10 << 20));
  CHECK(pod.containers.at(0).resources.limits.at("ephemeral-storage") == core::Quantity::bytes(20 << 20));
  CHECK(pod.termination_grace_period_seconds == 12);
  CHECK(pod.priority == 7);
  CHECK(pod.name == "a");
}

TEST_CASE("an annotated spec tells where the pod may run, and which ports of the node it takes") {
  auto pod = annotated(R"({"nodeSelector": {"disk": "ssd"}, "hostNetwork": true,
    "securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
    "containers": [{"name": "main", "ports": [{"containerPort": 80}]}]})");
  std::vector<Error> warnings;
  CHECK(apply_annotated_spec(pod, warnings));
  CHECK(pod.node_selector.at("disk") == "ssd");
  CHECK(pod.sysctls == std::vector<std::string>{"net.core.somaxconn"});
  CHECK(pod.containers.at(0).host_ports.at(0).port == 80);
}

TEST_CASE("a spec that cannot be read is a warning, and the pod stays as it was") {
  for (const auto* text :
       {"", "{", "[]", "null", R"({"containers": 3})", R"({"containers": [{"name": "x"}]}, "more": {})",
        R"({"containers": [{"name": "x"}]}, "metadata": {"name": "other"})", "null}\n---\n{",
        "containers: [{name: x}]"}) {  // YAML takes a thousand times as long
    CAPTURE(text);
    auto pod = annotated(text);
    const auto before = pod;
    std::vector<Error> warnings;
    CHECK_FALSE(apply_annotated_spec(pod, warnings));
    CHECK(warnings.size() == 1);
    CHECK(pod == before);
  }
}

TEST_CASE("an annotated spec has no status: what it claims to have been given is not read") {
  auto pod = annotated(R"({"allocatedResources": {"memory": "9Gi"},
    "status": {"containerStatuses": [{"name": "x", "allocatedResources": {"memory": "9Gi"}}]},
    "containerStatuses": [{"name": "x", "allocatedResources": {"memory": "9Gi"}}],
    "containers": [{"name": "x", "allocatedResources": {"memory": "9Gi"},
                    "resources": {"requests": {"memory": "1Gi"}}}]})");
  std::vector<Error> warnings;
  CHECK(apply_annotated_spec(pod, warnings));
  CHECK(pod.containers.at(0).resources.requests.at("memory") == core::Quantity::bytes(1 << 30));
  CHECK_FALSE(pod.taken.has_value());
}

TEST_CASE("an annotated spec has no hooks: only those in charge of the node have evictd run something") {
  const std::string hook = R"("lifecycle": {"preStop": {"exec": {"command": ["/bin/true"]}}})";
  auto pod = annotated(R"({"initContainers": [{"name": "proxy", "restartPolicy": "Always", )" + hook +
                       R"(}], "containers": [{"name": "main", )" + hook + "}]}");
  std::vector<Error> warnings;
  CHECK(apply_annotated_spec(pod, warnings));
  CHECK(warnings.empty());
  CHECK(pod.init_containers.at(0).restart_always);
  CHECK_FALSE(pod.init_containers.at(0).pre_stop.has_value());
  CHECK_FALSE(pod.containers.at(0).pre_stop.has_value());
}

TEST_CASE("a spec that is larger than annotations may be is not read") {
  const std::string spec = R"({"containers": [{"name": "x"}]})";
  std::vector<Error> warnings;
  auto pod = annotated(spec + std::string(max_annotated_spec - spec.size(), ' '));
  CHECK(apply_annotated_spec(pod, warnings));
  pod = annotated(spec + std::string(max_annotated_spec - spec.size() + 1, ' '));
  CHECK_FALSE(apply_annotated_spec(pod, warnings));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().message == "annotation evictd.io/pod-spec: is larger than 256 KiB");
}

TEST_CASE("a spec of more elements than a pod has is refused as a whole, and told once") {
  const auto tolerating = [](std::size_t count) {
    return annotated(R"({"containers": [{"name": "x"}], "tolerations": [)" + repeated("{}", count) + "]}");
  };
  std::vector<Error> warnings;
  auto pod = tolerating(max_annotated_elements - 1);  // and a container
  CHECK(apply_annotated_spec(pod, warnings));
  CHECK(pod.tolerations.size() == max_annotated_elements - 1);
  CHECK(warnings.empty());

  pod = tolerating(max_annotated_elements);
  const auto before = pod;
  CHECK_FALSE(apply_annotated_spec(pod, warnings));
  CHECK(pod == before);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front().message.ends_with("with this, lists and mappings have more than 2048 elements in all"));
}

TEST_CASE("elements count in whichever list or mapping of the spec they are, if they are read") {
  struct Case {
    std::string_view before, element, after;
  };
  const std::string_view main = R"({"containers": [{"name": "x")";
  for (
      const auto& [before, element, after] : std::vector<Case>{
          {R"("containers": [)", R"({"name": "@"})", "]"},
          {R"("initContainers": [)", R"({"name": "@"})", "]"},
          {R"("volumes": [)", R"({"name": "@"})", "]"},
          {R"("nodeSelector": {)", R"("@": "")", "}"},
          {R"("overhead": {)", R"("@": 1)", "}"},
          {R"("resources": {"requests": {)", R"("@": 1)", "}}"},
          {R"("securityContext": {"sysctls": [)", R"({"name": "@"})", "]}"},
          {R"("initContainers": [{"name": "i", "ports": [)", "{}", "]}]"},
          {R"("initContainers": [)", R"({"name": "@", "ports": [{}, {}, {}]})", "]"},
          {R"("affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [)",
           "null", "]}}}"}}) {
    CAPTURE(before);
    const auto pod_with = [&](std::size_t count) {
      return annotated(std::string(main) + "}], " + std::string(before) + repeated(element, count) +
                       std::string(after) + "}");
    };
    std::vector<Error> warnings;
    auto pod = pod_with(max_annotated_elements / 4 - 2);
    CHECK(apply_annotated_spec(pod, warnings));
    pod = pod_with(max_annotated_elements + 1);
    CHECK_FALSE(apply_annotated_spec(pod, warnings));
    CHECK(warnings.size() == 1);
  }
  std::vector<Error> warnings;
  auto pod = annotated(std::string(main) + R"(, "env": [)" + repeated(R"({"name": "@"})", 5000) + "]}]}");
  CHECK(apply_annotated_spec(pod, warnings));
}

TEST_CASE("without the annotation nothing happens") {
  core::Pod pod{.name_space = "default", .name = "a", .uid = "1"};
  std::vector<Error> warnings;
  CHECK_FALSE(apply_annotated_spec(pod, warnings));
  CHECK(warnings.empty());
}

}  // namespace evictd::pods::annotated_spec_test
