#include "core/pressure.hpp"

#include <doctest/doctest.h>

#include "fixture/node.hpp"

namespace evictd::core::pressure_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using enum NodeCondition;
using fixture::observed;
using fixture::threshold;
using fixture::with_min_reclaim;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

const auto hard = threshold(MemoryAvailable, "1Gi");
const auto soft = threshold(MemoryAvailable, "2Gi", 1min);

Observations memory(std::int64_t available, std::optional<Duration> time = std::nullopt) {
  return observed({{MemoryAvailable, available, 4_GiB, time}});
}

/// A tracker with its thresholds and the transition period of 5 min.
class Node {
 public:
  explicit Node(std::vector<Threshold> thresholds) : thresholds_{std::move(thresholds)} {}

  PressureTracker::Pass pass(Duration at, const Observations& observations) {
    now_ = Instant{at};
    return tracker_.update(thresholds_, transition, observations, now_);
  }

  /// What acts, one after the other; "!" where it is held by its minimum reclaim.
  std::string acting(Duration at, const Observations& observations) {
    std::string text;
    for (const auto& [threshold, unresolved] : pass(at, observations).acting)
      text += (text.empty() ? "" : ", ") + to_string(threshold) + (unresolved ? "!" : "");
    return text;
  }

  void configure(std::vector<Threshold> thresholds) {
    thresholds_ = std::move(thresholds);
    tracker_.retain(thresholds_);
  }

  [[nodiscard]] const NodeConditions& conditions() const { return tracker_.conditions(); }
  [[nodiscard]] std::optional<Instant> met_since(const Threshold& threshold) const {
    return tracker_.met_since(threshold);
  }
  [[nodiscard]] std::optional<Instant> next_change() const { return tracker_.next_change(transition, now_); }

 private:
  static constexpr Duration transition = 5min;
  std::vector<Threshold> thresholds_;
  PressureTracker tracker_;
  Instant now_{};
};

}  // namespace

TEST_CASE("a hard threshold acts in the pass that meets it, and raises its condition") {
  Node node{{hard}};
  CHECK(node.acting(0s, memory(1_GiB)).empty());
  CHECK(node.conditions().empty());
  CHECK(node.acting(10s, memory(1_GiB - 1)) == "memory.available<1Gi");
  CHECK(node.conditions() == NodeConditions{MemoryPressure});
}

TEST_CASE("a soft threshold raises the condition at once and acts once its grace period is over") {
  Node node{{soft}};
  CHECK(node.acting(10s, memory(1_GiB)).empty());
  CHECK(node.conditions() == NodeConditions{MemoryPressure});
  CHECK(node.acting(69s, memory(1_GiB)).empty());
  CHECK(node.acting(70s, memory(1_GiB)) == "memory.available<2Gi for 1m0s");
}

TEST_CASE("recovery within the grace period resets it, even where a minimum reclaim is not reached") {
  Node node{{with_min_reclaim(soft, "1Gi")}};
  CHECK(node.acting(0s, memory(1_GiB)).empty());
  CHECK(node.acting(50s, memory(2_GiB)).empty());
  CHECK(node.acting(60s, memory(1_GiB)).empty());
  CHECK(node.acting(119s, memory(1_GiB)).empty());
  CHECK(node.acting(120s, memory(1_GiB)) == "memory.available<2Gi for 1m0s");
}

TEST_CASE("a threshold that acted is over only with its minimum reclaim on top of its value") {
  Node node{{with_min_reclaim(hard, "500Mi")}};
  CHECK(node.acting(0s, memory(1200_MiB)).empty());  // above the value: it never acted
  CHECK(node.acting(10s, memory(1000_MiB)) == "memory.available<1Gi");
  CHECK(node.acting(20s, memory(1200_MiB)) == "memory.available<1Gi!");
  CHECK(node.acting(30s, memory(1523_MiB)) == "memory.available<1Gi!");
  CHECK(node.acting(40s, memory(1524_MiB)).empty());
  CHECK(node.acting(50s, memory(1200_MiB)).empty());
}

TEST_CASE("a threshold that is met while it is unresolved counts once") {
  Node node{{with_min_reclaim(hard, "500Mi")}};
  CHECK(node.acting(0s, memory(0)) == "memory.available<1Gi");
  CHECK(node.acting(10s, memory(0)) == "memory.available<1Gi!");
}

TEST_CASE("a condition clears when the transition period is over, to the moment") {
  Node node{{hard}};
  CHECK(node.pass(0s, memory(0)).conditions_changed);
  CHECK_FALSE(node.pass(1min, memory(0)).conditions_changed);
  CHECK_FALSE(node.pass(6min - 1ns, memory(4_GiB)).conditions_changed);
  CHECK(node.conditions() == NodeConditions{MemoryPressure});
  CHECK(node.pass(6min, memory(4_GiB)).conditions_changed);
  CHECK(node.conditions().empty());
}

TEST_CASE("the transition period begins only once the minimum reclaim is reached") {
  Node node{{with_min_reclaim(hard, "500Mi")}};
  (void)node.pass(0s, memory(0));
  (void)node.pass(1min, memory(1200_MiB));
  (void)node.pass(6min - 1s, memory(4_GiB));
  CHECK(node.conditions() == NodeConditions{MemoryPressure});
  (void)node.pass(6min, memory(4_GiB));
  CHECK(node.conditions().empty());
}

TEST_CASE("each condition has its own time") {
  Node node{{hard, threshold(NodefsAvailable, "1Gi"), threshold(PidAvailable, "100")}};
  (void)node.pass(0s, observed({{MemoryAvailable, 0, 4_GiB}, {PidAvailable, 0, 1000}}));
  CHECK(node.conditions() == NodeConditions{MemoryPressure, PidPressure});
  (void)node.pass(4min, observed({{NodefsAvailable, 0, 4_GiB}, {PidAvailable, 0, 1000}}));
  CHECK(node.conditions() == NodeConditions{MemoryPressure, DiskPressure, PidPressure});
  (void)node.pass(5min, observed({}));
  CHECK(node.conditions() == NodeConditions{DiskPressure, PidPressure});
}

TEST_CASE("an observation that vanishes drops both the soft timer and the hysteresis") {
  Node node{{with_min_reclaim(hard, "500Mi"), soft}};
  CHECK(node.acting(0s, memory(0)) == "memory.available<1Gi");
  CHECK(node.acting(50s, observed({})).empty());
  CHECK(node.acting(60s, memory(1200_MiB)).empty());
  CHECK(node.acting(119s, memory(1200_MiB)).empty());
  CHECK(node.acting(120s, memory(1200_MiB)) == "memory.available<2Gi for 1m0s");
}

TEST_CASE("numbers as old as those before hold the condition up but do not act again") {
  Node node{{hard}};
  CHECK(node.acting(0s, memory(0, 0s)) == "memory.available<1Gi");
  CHECK(node.acting(10s, memory(0, 0s)).empty());
  CHECK(node.conditions() == NodeConditions{MemoryPressure});
  CHECK(node.acting(20s, memory(0, 15s)) == "memory.available<1Gi!");
  CHECK(node.acting(30s, memory(0, 14s)).empty());
  CHECK(node.acting(40s, memory(0, 15s)) == "memory.available<1Gi!");  // newer than the pass before
  CHECK(node.acting(5min + 39s, memory(4_GiB, 16s)).empty());
  CHECK(node.conditions() == NodeConditions{MemoryPressure});  // the pass at 40 s was the last that met it
}

TEST_CASE("numbers without a time are always new, and so are the first after such or after none") {
  Node node{{hard}};
  CHECK(node.acting(0s, memory(0)) == "memory.available<1Gi");
  CHECK(node.acting(10s, memory(0)) == "memory.available<1Gi!");
  CHECK(node.acting(20s, memory(0, 0s)) == "memory.available<1Gi!");
  CHECK(node.acting(30s, memory(0, 0s)).empty());
  (void)node.pass(40s, observed({}));
  CHECK(node.acting(50s, memory(0, 0s)) == "memory.available<1Gi");
}

TEST_CASE("what acts stands in the order of precedence, whatever was met first") {
  Node node{{threshold(PidAvailable, "100"), threshold(NodefsAvailable, "1Gi"), soft, hard}};
  CHECK(node.acting(0s, observed({{PidAvailable, 0, 1000}})) == "pid.available<100");
  CHECK(
      node.acting(10s, observed({{PidAvailable, 0, 1000}, {NodefsAvailable, 0, 4_GiB}, {MemoryAvailable, 0, 4_GiB}})) ==
      "memory.available<1Gi, nodefs.available<1Gi, pid.available<100!");
  CHECK(node.acting(70s, observed({{MemoryAvailable, 0, 4_GiB}})) ==
        "memory.available<1Gi!, memory.available<2Gi for 1m0s");
}

TEST_CASE("a threshold is reported as crossed in the first pass that meets it, and again after recovery") {
  Node node{{hard, soft}};
  const auto crossed = [&](Duration at, std::int64_t available) {
    std::string text;
    for (const auto& threshold : node.pass(at, memory(available)).crossed) text += to_string(threshold) + ";";
    return text;
  };
  CHECK(crossed(0s, 1500_MiB) == "memory.available<2Gi for 1m0s;");
  CHECK(crossed(10s, 0) == "memory.available<1Gi;");
  CHECK(crossed(20s, 0).empty());
  CHECK(crossed(30s, 4_GiB).empty());
  CHECK(crossed(40s, 0) == "memory.available<1Gi;memory.available<2Gi for 1m0s;");
}

TEST_CASE("a threshold is known since it was met, through its minimum reclaim, until it is over") {
  Node node{{with_min_reclaim(hard, "500Mi")}};
  CHECK_FALSE(node.met_since(hard).has_value());
  (void)node.pass(10s, memory(0));
  (void)node.pass(20s, memory(1200_MiB));
  CHECK(node.met_since(hard) == Instant{10s});
  CHECK_FALSE(node.met_since(soft).has_value());
  (void)node.pass(30s, memory(4_GiB));
  CHECK_FALSE(node.met_since(hard).has_value());
}

TEST_CASE("time alone changes something when a grace period or a transition period ends") {
  Node node{{soft}};
  CHECK_FALSE(node.next_change().has_value());
  (void)node.pass(10s, memory(1_GiB));
  CHECK(node.next_change() == Instant{70s});
  (void)node.pass(70s, memory(1_GiB));
  CHECK_FALSE(node.next_change().has_value());  // the condition holds as long as the threshold is met
  (void)node.pass(80s, memory(4_GiB));
  CHECK(node.next_change() == Instant{70s + 5min});
  (void)node.pass(70s + 5min, memory(4_GiB));
  CHECK_FALSE(node.next_change().has_value());
}

TEST_CASE("a threshold that is configured away is forgotten, its condition ends by the transition period") {
  Node node{{with_min_reclaim(hard, "1Gi"), soft}};
  (void)node.pass(0s, memory(0));
  node.configure({soft});
  CHECK(node.acting(1min, memory(1500_MiB)) == "memory.available<2Gi for 1m0s");  // its timer ran on
  node.configure({});
  CHECK(node.acting(2min, memory(1500_MiB)).empty());
  CHECK(node.conditions() == NodeConditions{MemoryPressure});
  (void)node.pass(6min, memory(1500_MiB));
  CHECK(node.conditions().empty());
}

TEST_CASE("a threshold that is configured with another minimum reclaim is held by the new one") {
  Node node{{with_min_reclaim(hard, "2Gi")}};
  CHECK(node.acting(0s, memory(0)) == "memory.available<1Gi");
  node.configure({with_min_reclaim(hard, "100Mi")});
  CHECK(node.acting(10s, memory(1100_MiB)) == "memory.available<1Gi!");
  CHECK(node.acting(20s, memory(1124_MiB)).empty());
}

}  // namespace evictd::core::pressure_test
