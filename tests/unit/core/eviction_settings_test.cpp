#include "core/eviction_settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "fixture/node.hpp"

namespace evictd::core::eviction_settings_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::amount;
using fixture::error_of;
using fixture::threshold;
using fixture::value_of;
using BySignal = EvictionSettings::BySignal;

/// Thresholds as an operator would list them.
std::vector<std::string> printed(const std::vector<Threshold>& thresholds) {
  std::vector<std::string> result;
  for (const auto& threshold : thresholds) {
    result.push_back(to_string(threshold));
    if (threshold.min_reclaim) result.back() += " +" + threshold.min_reclaim->to_string();
  }
  return result;
}

using Lines = std::vector<std::string>;

/// No thresholds but those a test gives, and no copies of them.
EvictionSettings nothing() {
  EvictionSettings settings;
  settings.hard = BySignal{};
  settings.enforce_node_allocatable.clear();
  return settings;
}

EvictionSettings hard(BySignal entries) {
  auto settings = nothing();
  settings.hard = std::move(entries);
  return settings;
}

EvictionSettings soft(BySignal entries, BySignal grace_periods) {
  auto settings = nothing();
  settings.soft = std::move(entries);
  settings.soft_grace_period = std::move(grace_periods);
  return settings;
}

Lines thresholds(const EvictionSettings& settings) { return printed(value_of(make_policy(settings)).thresholds); }
std::string error(const EvictionSettings& settings) { return error_of(make_policy(settings)); }
std::string hard_error(const std::string& value) { return error(hard({{"memory.available", value}})); }

}  // namespace

TEST_CASE("an absent evictionHard means the kubelet's defaults") {
  const auto policy = value_of(make_policy({}));
  CHECK(printed(policy.thresholds) == Lines{"memory.available<100Mi", "allocatableMemory.available<100Mi",
                                            "nodefs.available<10%", "nodefs.inodesFree<5%", "imagefs.available<15%",
                                            "imagefs.inodesFree<5%"});
  CHECK(policy.max_pod_grace_period == Duration::zero());
  CHECK(policy.pressure_transition_period == 5min);
  CHECK(policy.local_storage_isolation);
  for (const auto& threshold : policy.thresholds)
    CHECK(
        (threshold.source == ThresholdSource::Default || threshold.source == ThresholdSource::EnforceNodeAllocatable));
}

TEST_CASE("an empty evictionHard means no threshold") { CHECK(thresholds(hard({})) == Lines{}); }

TEST_CASE("any entry of evictionHard replaces all defaults, unless they are to be merged") {
  auto settings = hard({{"nodefs.available", "20%"}});
  CHECK(thresholds(settings) == Lines{"nodefs.available<20%"});
  settings.merge_defaults = true;
  CHECK(thresholds(settings) == Lines{"memory.available<100Mi", "nodefs.available<20%", "nodefs.inodesFree<5%",
                                      "imagefs.available<15%", "imagefs.inodesFree<5%"});
  const auto merged = value_of(make_policy(settings)).thresholds;
  CHECK(merged[0].source == ThresholdSource::Default);
  CHECK(merged[1].source == ThresholdSource::EvictionHard);
}

TEST_CASE("an entry that switches a threshold off keeps the merged default away") {
  auto settings = hard({{"nodefs.available", "0%"}});
  settings.merge_defaults = true;
  CHECK(thresholds(settings) ==
        Lines{"memory.available<100Mi", "nodefs.inodesFree<5%", "imagefs.available<15%", "imagefs.inodesFree<5%"});
}

TEST_CASE("every signal may be configured, and thresholds stand in the order in which they act") {
  BySignal all;
  for (const auto signal : all_signals()) all.emplace(name(signal), "1");
  const auto policy = value_of(make_policy(hard(all)));
  REQUIRE(policy.thresholds.size() == all_signals().size());
  for (std::size_t i = 0; i < all_signals().size(); ++i) CHECK(policy.thresholds[i].signal == all_signals()[i]);
}

TEST_CASE("percentages may have fractions, several signs and an exponent") {
  CHECK(thresholds(hard({{"nodefs.available", "12.5%"}})) == Lines{"nodefs.available<12.5%"});
  CHECK(thresholds(hard({{"nodefs.available", "10%%%"}})) == Lines{"nodefs.available<10%"});
  CHECK(thresholds(hard({{"nodefs.available", "+10%"}})) == Lines{"nodefs.available<10%"});
  CHECK(thresholds(hard({{"nodefs.available", "1e1%"}})) == Lines{"nodefs.available<10%"});
  CHECK(thresholds(hard({{"nodefs.available", ".5%"}})) == Lines{"nodefs.available<0.5%"});
}

TEST_CASE("0% and 100% to the letter mean no threshold; 0.0% stays as one that never acts") {
  CHECK(thresholds(hard({{"memory.available", "0%"}, {"nodefs.available", "100%"}})) == Lines{});
  CHECK(thresholds(hard({{"memory.available", "0.0%"}, {"nodefs.available", "100.0%"}})) ==
        Lines{"memory.available<0%", "nodefs.available<100%"});
  CHECK(thresholds(soft({{"memory.available", "0%"}}, {})) == Lines{});  // and so needs no grace period
}

TEST_CASE("a threshold that is no threshold names key and value") {
  CHECK(hard_error("5x") == "evictionHard: memory.available: \"5x\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(hard_error("") == "evictionHard: memory.available: \"\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(hard_error("0") == "evictionHard: memory.available: \"0\" must be more than zero");
  CHECK(hard_error("-1Gi") == "evictionHard: memory.available: \"-1Gi\" must be more than zero");
  CHECK(hard_error("x%") == "evictionHard: memory.available: \"x%\" is not a percentage such as 10%");
  CHECK(hard_error("%") == "evictionHard: memory.available: \"%\" is not a percentage such as 10%");
  CHECK(hard_error("10 %") == "evictionHard: memory.available: \"10 %\" is not a percentage such as 10%");
  CHECK(hard_error("nan%") == "evictionHard: memory.available: \"nan%\" is not a percentage such as 10%");
  CHECK(hard_error("-1%") ==
        "evictionHard: memory.available: \"-1%\" is negative: a threshold lies between 0% and 100%");
  CHECK(hard_error("100.1%") == "evictionHard: memory.available: \"100.1%\" is more than 100%");
  CHECK(error(soft({{"nodefs.available", "none"}}, {{"nodefs.available", "1m"}})) ==
        "evictionSoft: nodefs.available: \"none\" is not a quantity such as 150Mi, 1.5G or 500");
}

TEST_CASE("an unsupported signal is an error wherever it stands") {
  CHECK(error(hard({{"memory.free", "1Gi"}})) == "evictionHard: memory.free: unsupported eviction signal memory.free");
  CHECK(error(soft({{"swap.available", "1Gi"}}, {})) ==
        "evictionSoft: swap.available: unsupported eviction signal swap.available");
  CHECK(error(soft({}, {{"x", "1m"}})) == "evictionSoftGracePeriod: x: unsupported eviction signal x");
  auto settings = nothing();
  settings.minimum_reclaim = {{"x", "1"}};
  CHECK(error(settings) == "evictionMinimumReclaim: x: unsupported eviction signal x");
}

TEST_CASE("what cannot be printed stands escaped in an error") {
  CHECK(error(hard({{"a\x1b[2J\n", "1Gi"}})) == "evictionHard: a\\x1b[2J\\n: unsupported eviction signal a\\x1b[2J\\n");
  CHECK(error(hard({{"memory.available", "\n%"}})) ==
        "evictionHard: memory.available: \"\\n%\" is not a percentage such as 10%");
}

TEST_CASE("a soft threshold waits for its grace period") {
  CHECK(thresholds(soft({{"memory.available", "2Gi"}}, {{"memory.available", "1m30s"}})) ==
        Lines{"memory.available<2Gi for 1m30s"});
  CHECK(value_of(make_policy(soft({{"memory.available", "2Gi"}}, {{"memory.available", "1m"}}))).thresholds[0].source ==
        ThresholdSource::EvictionSoft);
}

TEST_CASE("a soft threshold without a grace period is an error, a grace period without a threshold is none") {
  CHECK(error(soft({{"memory.available", "2Gi"}}, {})) ==
        "evictionSoft: memory.available: a soft threshold needs a grace period: add it to evictionSoftGracePeriod");
  CHECK(thresholds(soft({}, {{"memory.available", "2m"}})) == Lines{});
}

TEST_CASE("a grace period of zero makes a soft threshold a hard one") {
  auto settings = soft({{"memory.available", "2Gi"}}, {{"memory.available", "0"}});
  CHECK(value_of(make_policy(settings)).thresholds[0].is_hard());
  settings.enforce_node_allocatable = {"pods"};
  CHECK(thresholds(settings) == Lines{"memory.available<2Gi", "allocatableMemory.available<2Gi"});
}

TEST_CASE("a grace period that is none names key and value") {
  CHECK(error(soft({}, {{"memory.available", "30"}})) ==
        "evictionSoftGracePeriod: memory.available: \"30\" lacks a unit: write 90s or 1m30s");
  CHECK(error(soft({}, {{"memory.available", "soon"}})) ==
        "evictionSoftGracePeriod: memory.available: \"soon\" is not a duration such as 90s or 1m30s");
  CHECK(error(soft({}, {{"memory.available", "-1s"}})) ==
        "evictionSoftGracePeriod: memory.available: \"-1s\" must not be negative");
}

TEST_CASE("a minimum reclaim belongs to all thresholds of its signal, and to no other") {
  auto settings = soft({{"memory.available", "2Gi"}}, {{"memory.available", "1m"}});
  settings.hard = BySignal{{"memory.available", "1Gi"}, {"nodefs.available", "10%"}};
  settings.minimum_reclaim = {{"memory.available", "500Mi"}, {"pid.available", "10"}};
  settings.enforce_node_allocatable = {"pods"};
  CHECK(thresholds(settings) == Lines{"memory.available<1Gi +500Mi", "memory.available<2Gi for 1m0s +500Mi",
                                      "allocatableMemory.available<1Gi +500Mi", "nodefs.available<10%"});
}

TEST_CASE("a minimum reclaim may be zero or more than everything, but not negative, and not 0%") {
  auto settings = hard({{"nodefs.available", "10%"}});
  settings.minimum_reclaim = {{"nodefs.available", "0"}};
  CHECK(thresholds(settings) == Lines{"nodefs.available<10% +0"});
  settings.minimum_reclaim = {{"nodefs.available", "150%"}};
  CHECK(thresholds(settings) == Lines{"nodefs.available<10% +150%"});
  settings.minimum_reclaim = {{"nodefs.available", "-1"}};
  CHECK(error(settings) == "evictionMinimumReclaim: nodefs.available: \"-1\" must not be negative");
  for (const std::string text : {"0%", "-1%"}) {
    settings.minimum_reclaim = {{"nodefs.available", text}};
    CHECK(error(settings) == "evictionMinimumReclaim: nodefs.available: \"" + text + "\" must be more than 0%");
  }
  settings.minimum_reclaim = {{"nodefs.available", "a lot"}};
  CHECK(error(settings) ==
        "evictionMinimumReclaim: nodefs.available: \"a lot\" is not a quantity such as 150Mi, 1.5G or 500");
}

TEST_CASE("of several errors the first is told: hard, soft, grace periods, minimum reclaims, missing grace periods") {
  auto settings = soft({{"memory.available", "1Gi"}}, {{"nodefs.available", "x"}});
  settings.minimum_reclaim = {{"nodefs.available", "x"}};
  settings.hard = BySignal{{"pid.available", "x"}};
  CHECK(error(settings).starts_with("evictionHard: pid.available"));
  settings.hard->clear();
  settings.soft["imagefs.available"] = "x";
  CHECK(error(settings).starts_with("evictionSoft: imagefs.available"));
  settings.soft.erase("imagefs.available");
  CHECK(error(settings).starts_with("evictionSoftGracePeriod: nodefs.available"));
  settings.soft_grace_period.clear();
  CHECK(error(settings).starts_with("evictionMinimumReclaim: nodefs.available"));
  settings.minimum_reclaim.clear();
  CHECK(error(settings).starts_with("evictionSoft: memory.available: a soft threshold needs"));
}

TEST_CASE("hard memory thresholds guard the pods' cgroup too, where pods are enforced; soft ones do not") {
  auto settings = soft({{"memory.available", "2Gi"}}, {{"memory.available", "1m"}});
  settings.hard = BySignal{{"memory.available", "1Gi"}};
  settings.enforce_node_allocatable = {"system-reserved", "pods"};
  CHECK(thresholds(settings) ==
        Lines{"memory.available<1Gi", "memory.available<2Gi for 1m0s", "allocatableMemory.available<1Gi"});
  CHECK(value_of(make_policy(settings)).thresholds.back().source == ThresholdSource::EnforceNodeAllocatable);
  settings.enforce_node_allocatable = {"none"};
  CHECK(thresholds(settings) == Lines{"memory.available<1Gi", "memory.available<2Gi for 1m0s"});
}

TEST_CASE("periods: zero is the default for the transition, a negative maximum is kept") {
  auto settings = nothing();
  settings.pressure_transition_period = 30s;
  settings.max_pod_grace_period_seconds = 5;
  settings.local_storage_capacity_isolation = false;
  auto policy = value_of(make_policy(settings));
  CHECK(policy.pressure_transition_period == 30s);
  CHECK(policy.max_pod_grace_period == Duration{5s});
  CHECK_FALSE(policy.local_storage_isolation);
  settings.pressure_transition_period = 0s;
  settings.max_pod_grace_period_seconds = -1;
  policy = value_of(make_policy(settings));
  CHECK(policy.pressure_transition_period == 5min);
  CHECK(policy.max_pod_grace_period == Duration{-1s});
  settings.pressure_transition_period = -1s;
  CHECK(error(settings) == "evictionPressureTransitionPeriod: \"-1s\" must not be negative");
}

TEST_CASE("containerfs thresholds are those of the file system that holds the writable layers") {
  const std::vector given{threshold(NodefsAvailable, "1Gi"), threshold(NodefsAvailable, "2Gi", 1min),
                          threshold(NodefsInodesFree, "100"), threshold(ImagefsAvailable, "3Gi"),
                          threshold(ImagefsInodesFree, "300", 1min)};
  const Lines from_nodefs{"containerfs.available<1Gi", "containerfs.available<2Gi for 1m0s",
                          "containerfs.inodesFree<100"};
  const Lines from_imagefs{"containerfs.available<3Gi", "containerfs.inodesFree<300 for 1m0s"};
  const auto derived = [&](FilesystemLayout layout) {
    auto all = with_derived_containerfs(given, layout);
    REQUIRE(all.size() > given.size());
    CHECK(std::equal(given.begin(), given.end(), all.begin()));
    return printed({all.begin() + static_cast<std::ptrdiff_t>(given.size()), all.end()});
  };
  CHECK(derived({}) == from_nodefs);
  CHECK(derived({.dedicated_imagefs = true}) == from_imagefs);
  CHECK(derived({.dedicated_imagefs = true, .split = true}) == from_nodefs);
}

TEST_CASE("containerfs thresholds that were given are replaced, even by none") {
  const std::vector given{threshold(MemoryAvailable, "1Gi"), threshold(ContainerfsAvailable, "5Gi")};
  CHECK(printed(with_derived_containerfs(given, {})) == Lines{"memory.available<1Gi"});
}

TEST_CASE("before all are derived only the containerfs thresholds that were given have the derived values") {
  const std::vector given{threshold(NodefsAvailable, "1Gi"), threshold(NodefsAvailable, "2Gi", 1min),
                          threshold(NodefsInodesFree, "100"), threshold(ContainerfsAvailable, "5Gi", 1h)};
  CHECK(printed(with_given_containerfs_replaced(given, {})) ==
        Lines{"nodefs.available<1Gi", "nodefs.available<2Gi for 1m0s", "nodefs.inodesFree<100",
              "containerfs.available<2Gi for 1m0s"});
  const std::vector without_source{threshold(MemoryAvailable, "1Gi"), threshold(ContainerfsAvailable, "5Gi")};
  CHECK(printed(with_given_containerfs_replaced(without_source, {})) == Lines{"memory.available<1Gi"});
}

TEST_CASE("derived thresholds keep the minimum reclaim, and say that they are derived") {
  const auto all =
      with_derived_containerfs({fixture::with_min_reclaim(threshold(NodefsAvailable, "1Gi"), "500Mi")}, {});
  CHECK(printed(all) == Lines{"nodefs.available<1Gi +500Mi", "containerfs.available<1Gi +500Mi"});
  CHECK(all[1].source == ThresholdSource::Derived);
  CHECK(printed(with_derived_containerfs(all, {})) == printed(all));  // deriving again changes nothing
}

}  // namespace evictd::core::eviction_settings_test
