// Evictions leave nothing behind in the runtime.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "hostile/soon.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process_table.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::shims_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using testbed::Event;

namespace {

/// Of the testbed's own containerd: they carry the testbed's mark, which they have from it.
std::ptrdiff_t shims(const testbed::Testbed& testbed) {
  return std::ranges::count_if(testbed::marked_processes(testbed.directory()), [](pid_t pid) {
    const auto name = testbed::try_read_file(fmt::format("/proc/{}/comm", pid));
    return name && name->starts_with("containerd-shim");
  });
}

/// Whether evictd sees more available than the threshold wants, so that nobody has to go.
bool has_room(const testbed::Agent& agent, std::int64_t wanted) {
  const auto status = agent.status();
  const auto memory = std::ranges::find(status.signals(), "memory.available", &evictd::v1::SignalStatus::signal);
  return memory != status.signals().end() && memory->available() >= wanted;
}

std::ptrdiff_t count(testbed::Agent& agent, Event::Kind kind) {
  return std::ranges::count(agent.events().all(), kind, &Event::kind);
}

}  // namespace

TEST_SUITE("hostile") {
  TEST_CASE("after fifty evictions there are as many shims as pods that live") {
    testbed::Testbed testbed{{.node = {.memory_limit = 1024 * mebi}}};
    testbed::Agent agent{testbed,
                         {.thresholds = "evictionHard: {memory.available: 864Mi}", .eviction = "maxPerMinute: 0"}};
    // The node has room for some of them; then each that comes has one go, unless two went for the one before.
    constexpr int evictions = 50;
    constexpr int most_pods = 2 * evictions;
    for (int i = 0; i < most_pods && count(agent, Event::CONTAINERS_KILLED) < evictions; ++i) {
      const auto gone = count(agent, Event::CONTAINERS_KILLED);
      static_cast<void>(testbed.cri().run_pod(pod(fmt::format("hog{}", i), QosClass::BestEffort, {"hold", "30Mi"})));
      if (gone > 0)
        testbed::wait_until("one goes, or nobody has to", soon, [&] {
          return count(agent, Event::CONTAINERS_KILLED) > gone || has_room(agent, 864 * mebi);
        });
    }
    CHECK(count(agent, Event::EVICTION_INTENDED) >= evictions);
    testbed::wait_until("nothing is under way", 30s, [&] { return agent.status().in_flight().empty(); });

    const auto pods = [&] { return static_cast<std::ptrdiff_t>(testbed.cri().ready_pods().size()); };
    CHECK(pods() > 0);
    const bool as_many = testbed::comes_true(10s, [&] { return shims(testbed) == pods(); });
    INFO(shims(testbed), " shims, ", pods(), " pods");
    CHECK(as_many);
  }
}

}  // namespace integration::shims_test
