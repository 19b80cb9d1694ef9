#include <doctest/doctest.h>

#include <chrono>

#include "bare_root.hpp"
#include "deb.hpp"
#include "installation.hpp"
#include "support/skip.hpp"
#include "testbed/agent.hpp"
#include "testbed/process.hpp"

using namespace std::chrono_literals;

TEST_CASE(
    "on a bare Debian of this release the package is installed, upgraded, removed and purged, and leaves nothing") {
  try {
    package::check_life_of(package::deb(), package::this_machines_release());
  } catch (const package::NoWayToPackages& error) {
    support::skipped(error.what());
  }
}

TEST_CASE("the evictd of the package evicts a pod") {
  const testbed::WorkDirectory directory;
  const auto tree = directory.path() / "tree";
  testbed::run({"dpkg-deb", "--extract", package::deb(), tree});
  testbed::Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  testbed::Agent agent{testbed,
                       {.thresholds = "evictionHard: {memory.available: 300Mi}", .program = tree / "usr/sbin/evictd"}};
  const auto hog = testbed.cri().run_pod(
      {.name = "hog", .qos = evictd::core::QosClass::BestEffort, .containers = {{.args = {"hold", "800Mi"}}}});
  agent.events().wait_for(evictd::v1::Event::CLEANUP_DONE, "default/hog", 60s);
  CHECK(testbed.node().processes(hog.cgroup).empty());
  CHECK(testbed::run({tree / "usr/bin/evictctl", "--address", agent.address(), "pods"}).find("default/hog") ==
        std::string::npos);
}
