// A pod whose author writes into its annotations what would let it stay while others go.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::lying_annotation_test {

using evictd::core::QosClass;
using testbed::Agent;
using testbed::Testbed;

namespace {

/// As the default has it; the testbed trusts every namespace otherwise.
constexpr auto only_the_system = "podSources: {trustedNamespaces: [kube-system]}\n";

/// It says that it is Guaranteed and requests more than any node has. Its memory follows DIRECTORY/size.
testbed::PodSpec liar(QosClass qos, const std::filesystem::path& directory) {
  auto spec = integration::pod("liar", qos, {"follow", "/control/size"});
  spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/control"});
  if (qos == QosClass::Burstable) spec.containers[0].memory_request = 16 * mebi;
  spec.annotations["evictd.io/pod-spec"] =
      R"({"terminationGracePeriodSeconds": 86400, "containers": [{"name": "main", "resources": )"
      R"({"requests": {"memory": "1000Gi", "cpu": "64"}, "limits": {"memory": "1000Gi", "cpu": "64"}}}]})";
  return spec;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("a hog that claims to request 1000Gi goes before a pod within its request, and the log says why once") {
    Testbed testbed{gibi_node};
    auto spec = integration::pod("modest", QosClass::Burstable, {"hold", "64Mi"});
    spec.containers[0].memory_request = 128 * mebi;
    const auto modest = testbed.cri().run_pod(spec);
    const auto control = testbed.directory() / "liar";
    std::filesystem::create_directory(control);
    testbed::replace_file(control / "size", std::to_string(8 * mebi));
    auto qos = QosClass::BestEffort;
    SUBCASE("of class Burstable") { qos = QosClass::Burstable; }
    SUBCASE("of class BestEffort") { qos = QosClass::BestEffort; }
    const auto hog = testbed.cri().run_pod(liar(qos, control));
    Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}", .sections = only_the_system}};
    agent.wait_for_pods(2);

    testbed::replace_file(control / "size", std::to_string(700 * mebi));
    testbed::wait_until("the liar's processes are dead", integration::soon,
                        [&] { return !has_processes(testbed, hog); });
    CHECK(has_processes(testbed, modest));
    CHECK(count(agent.process().errors(), "container \"main\" claims to request 1000Gi of memory") == 1);
  }
}

}  // namespace integration::lying_annotation_test
