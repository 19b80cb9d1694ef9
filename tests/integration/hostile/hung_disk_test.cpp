#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fault_scene.hpp"
#include "history.hpp"
#include "hostile/served_disk.hpp"
#include "hostile/soon.hpp"
#include "stopped.hpp"
#include "support/skip.hpp"
#include "testbed/agent.hpp"
#include "testbed/wait.hpp"

namespace integration::hung_disk_test {

using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

testbed::Agent::Options on(const ServedDisk& disk) {
  // One directory of a volume that is watched from the start, and logs.
  (void)disk.directory("kubelet/pods/hog/volumes/kubernetes.io~empty-dir/cache");
  testbed::Agent::Options options;
  options.kubelet = fmt::format("podLogsDir: {}\n", disk.directory("logs").native());
  options.node = fmt::format("kubeletRoot: {}", disk.directory("kubelet").native());
  options.notifier = "fallbackInterval: 500ms";
  return options;
}

/// Bytes of the node's own file system; absent while it is not measured.
std::optional<std::int64_t> nodefs(const testbed::Agent& agent) {
  const auto status = agent.status();
  const auto found =
      std::ranges::find_if(status.signals(), [](const auto& each) { return each.signal() == "nodefs.available"; });
  if (found == status.signals().end() || found->capacity() == 0) return std::nullopt;
  return found->capacity();
}

std::ptrdiff_t told(const testbed::Agent& agent, std::string_view state) {
  return std::ranges::count_if(integration::history(agent), [&](const Event& event) {
    return event.kind() == Event::SOURCE_DEGRADED && event.source_degraded().source() == "nodefs" &&
           event.source_degraded().state().starts_with(state);
  });
}

constexpr std::int64_t capacity = std::int64_t{10} << 30;

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("a disk that hangs keeps no memory eviction waiting, is told once, and is measured again when it answers") {
    SKIP_UNLESS(ServedDisk::possible(), "no /dev/fuse");
    const ServedDisk disk;
    FaultScene scene{on(disk)};
    REQUIRE(nodefs(*scene.agent) == capacity);
    {
      const Stopped hung{disk.server()};
      testbed::wait_until("some passes have asked the disk", 20s, [&, passes = scene.agent->status().passes()] {
        return scene.agent->status().passes() > passes + 1;
      });
      expect_hog_goes_soon(scene);
      testbed::wait_until("the disk is told", 20s, [&] { return told(*scene.agent, "failed") == 1; });
      testbed::wait_until("it counts as not measured", 20s, [&] { return !nodefs(*scene.agent); });
      const auto passes = scene.agent->status().passes();
      testbed::wait_until("passes go on", 20s, [&] { return scene.agent->status().passes() > passes + 2; });
    }
    testbed::wait_until("the disk is measured again", 20s, [&] { return nodefs(*scene.agent) == capacity; });
    CHECK(told(*scene.agent, "failed") == 1);
    CHECK(told(*scene.agent, "recovered") == 1);
    scene.check_victims();
  }

  TEST_CASE("evictd starts, guards and ends beside a disk that hangs") {
    SKIP_UNLESS(ServedDisk::possible(), "no /dev/fuse");
    const ServedDisk disk;
    const auto options = on(disk);
    const Stopped hung{disk.server()};
    FaultScene scene{options};
    expect_hog_goes_soon(scene);
    scene.check_victims();
    scene.agent->process().signal(SIGTERM);
    CHECK(scene.agent->process().wait(20s) == 0);
  }

  TEST_CASE("evictd starts, guards and ends beside a stateDirectory that hangs") {
    SKIP_UNLESS(ServedDisk::possible(), "no /dev/fuse");
    const ServedDisk disk;
    const auto state = disk.file("state/allocations.json", "{}").parent_path();
    const Stopped hung{disk.server()};
    testbed::Agent::Options options;
    options.sections = fmt::format("stateDirectory: {}\n", state.native());
    FaultScene scene{options};
    expect_hog_goes_soon(scene);
    scene.check_victims();
    scene.agent->process().signal(SIGTERM);
    CHECK(scene.agent->process().wait(20s) == 0);
    CHECK(scene.agent->process().errors().contains(state.native() + ": the disk does not answer"));
  }
}

}  // namespace integration::hung_disk_test
