// Others on the node that kill when memory runs short, by their packages and as these configure them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "node.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace node_suite::neighbours_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using Lines = std::vector<std::string>;

namespace {

/// Installed, and stopped again with this object.
struct Neighbours {
  const Lines units{"earlyoom.service", "systemd-oomd.service"};

  Neighbours() {
    testbed::run({"sh", "-c", "dpkg --install /var/cache/apt/archives/*.deb"}, 2min);
    for (const auto& unit : units)
      testbed::wait_until(unit + " runs", 60s, [&] { return property("ActiveState", unit) == "active"; });
  }
  ~Neighbours() {
    for (const auto& unit : units) testbed::run({"systemctl", "disable", "--now", unit});
  }
};

}  // namespace

TEST_CASE("systemd-oomd and earlyoom beside it leave evictd, its evictions and the pods alone") {
  const Neighbours neighbours;
  Node node;
  const auto pid = main_pid();
  const auto chill = node.run(pod("chill-beside", QosClass::Burstable, {"hold", "32Mi"}));
  node.set_thresholds(
      fmt::format("evictionHard: {{memory.available: {}Mi}}", node.available("memory.available") / mebi - 200));
  const auto hog = node.run(pod("hog-beside", QosClass::BestEffort, {"grow", "16Mi", "50Mi/s", "400Mi"}));
  node.events().wait_for(Event::CLEANUP_DONE, "default/hog-beside", 120s);
  CHECK(Node::left_of(hog) == "");
  CHECK(node.cri().is_running(chill));
  CHECK(main_pid() == pid);
  // Its package does not hand the pods' slices to systemd-oomd.
  for (const auto* key : {"ManagedOOMSwap", "ManagedOOMMemoryPressure"}) {
    CAPTURE(key);
    CHECK(property(key, "kubepods.slice") == "auto");
  }
  CHECK_FALSE(testbed::run({"journalctl", "--no-pager", "--unit", "earlyoom"}).contains("to process"));
}

}  // namespace node_suite::neighbours_test
