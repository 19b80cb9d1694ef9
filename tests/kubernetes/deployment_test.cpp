#include "deployment.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "programs.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace kubernetes::deployment_test {

using namespace std::chrono_literals;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;

/// A program of the image, in a container that has nothing of the host.
std::string run_in_image(Testbed& testbed, const std::string& image, const std::vector<std::string>& command) {
  std::vector<std::string> line{
      "ctr",  "--address",   testbed.containerd().socket(), "--namespace", "k8s.io",      "run",
      "--rm", "--runc-root", testbed.directory() / "runc",  image,         "run-in-image"};
  line.insert(line.end(), command.begin(), command.end());
  return testbed::run(line);
}

}  // namespace

TEST_CASE("the image has evictd and evictctl with all that they need to run") {
  Testbed testbed;
  const auto image = import_image(testbed);
  CHECK(image.starts_with("evictd.io/evictd:"));
  // It is the one that is deployed.
  const auto daemon_set = testbed::read_file(manifest_directory() / "30-daemonset.yaml");
  CHECK(daemon_set.find("image: " + image + "\n") != std::string::npos);

  CHECK(run_in_image(testbed, image, {"evictd", "--help"}).find("simulate") != std::string::npos);
  CHECK(run_in_image(testbed, image, {"evictctl", "--help"}).find("health") != std::string::npos);
  // Without a mount it sees the container's own cgroups: check opens what run would.
  CHECK(run_in_image(testbed, image, {"evictd", "check"}).find("offers:") != std::string::npos);
}

TEST_CASE("deployed as tools/deploy has it, evictd evicts the hog of a real cluster and nothing else") {
  Cluster cluster{{.testbed = {.node = {.memory_limit = 1024 * mebi}}}};
  const Deployment evictd{cluster, {.eviction_hard = "{memory.available: 250Mi}"}};

  const auto chill = cluster.run({.name = "chill", .args = {"hold", "32Mi"}, .resources = "requests: {memory: 64Mi}"});
  const auto vital =
      cluster.run({.name = "vital", .args = {"hold", "256Mi"}, .priority_class = "system-node-critical"});
  const auto hog = cluster.run({.name = "hog", .args = {"grow", "16Mi", "100Mi/s"}});
  testbed::wait_until("the hog has failed", 120s, [&] { return cluster.phase("hog") == "Failed"; });

  testbed::wait_until("evictd tells that it was its doing", 60s, [&] {
    const auto events =
        testbed::run({testbed::evictctl_program(), "--address", evictd.address(), "-o", "json", "events"});
    return events.find("EVICTION_INTENDED") != std::string::npos && events.find("CLEANUP_DONE") != std::string::npos;
  });
  CHECK(cluster.testbed().cri().is_running(chill));
  CHECK(cluster.testbed().cri().is_running(vital));
  CHECK_FALSE(cluster.testbed().cri().is_running(hog));
  CHECK(cluster.pod(evictd.pod()).at("/status/containerStatuses/0/restartCount") == "0");
  // The capabilities are enough: nothing was refused.
  const auto log = evictd.log();
  CHECK(log.find("guards " + cluster.testbed().node().cgroup()) != std::string::npos);
  for (const char* refused : {"not locked", "SIGKILL to process", "ermission denied", "degraded", "not permitted"})
    CHECK_MESSAGE(log.find(refused) == std::string::npos, log);
}

}  // namespace kubernetes::deployment_test
