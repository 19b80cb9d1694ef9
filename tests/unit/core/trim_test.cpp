#include "core/trim.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/event.hpp"
#include "fixture/node.hpp"
#include "fixture/pods.hpp"

namespace evictd::core::trim_test {
namespace {

using namespace std::chrono_literals;
using fixture::container;
using fixture::pod;
using fixture::with_priority;
using fixture::operator""_MiB;

Observations memory(std::int64_t available) {
  Observations result;
  result[Signal::MemoryAvailable] = Observation{.available = available, .capacity = 1000_MiB};
  return result;
}

}  // namespace

TEST_CASE("a hard threshold is near below twice its value; a met one is nothing to be trimmed for") {
  const std::vector thresholds{fixture::threshold(Signal::MemoryAvailable, "100Mi")};
  const auto goal = trim_near_hard(thresholds, memory(150_MiB));
  REQUIRE(goal);
  CHECK(goal->wanted == 50_MiB);
  CHECK_FALSE(trim_near_hard(thresholds, memory(200_MiB)));
  CHECK_FALSE(trim_near_hard(thresholds, memory(99_MiB)));
  CHECK_FALSE(trim_near_hard(thresholds, {}));
  const std::vector disk{fixture::threshold(Signal::NodefsAvailable, "100Mi")};
  CHECK_FALSE(trim_near_hard(disk, memory(150_MiB)));
}

TEST_CASE("those over their request that may go are trimmed, in their order") {
  Synchronizer policy{EvictionPolicy{.thresholds = {fixture::threshold(Signal::MemoryAvailable, "100Mi")}}};
  const auto pods =
      fixture::pods({pod("within", {container("main", {{"memory", "100Mi"}})}), with_priority(pod("later"), 7),
                     pod("first"), with_priority(pod("vital"), system_critical_priority)});
  static_cast<void>(policy.tell(PodsChanged{std::make_shared<const PodList>(pods)}, Instant{1s}));
  const std::vector<std::optional<PodUsage>> usage(4, PodUsage{.working_set = 50_MiB});
  std::vector<std::string> names;
  for (const auto& ranked : trimmed_pods(policy, Signal::MemoryAvailable, usage, Instant{1s}))
    names.push_back(ranked.pod->name);
  CHECK(names == std::vector<std::string>{"first", "later"});
}

}  // namespace evictd::core::trim_test
