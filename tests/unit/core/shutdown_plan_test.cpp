#include "core/shutdown_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "fixture/pods.hpp"
#include "fixture/random.hpp"
#include "fixture/result.hpp"

namespace evictd::core::shutdown_plan_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::Random;
using fixture::value_of;

PodPtr pod_of(std::string name, std::optional<std::int32_t> priority, std::optional<std::int64_t> grace = {}) {
  auto pod = fixture::pod(std::move(name));
  pod.priority = priority;
  pod.termination_grace_period_seconds = grace;
  return std::make_shared<const Pod>(std::move(pod));
}

std::string names(const PodList& pods) {
  std::string text;
  for (const auto& pod : pods) text += (text.empty() ? "" : " ") + pod->name;
  return text;
}

TEST_CASE("the classic pair is two groups, and disabled where it is zero") {
  struct Row {
    Duration total;
    Duration critical;
    ShutdownGroups groups;
  };
  for (const auto& [total, critical, groups] : {
           Row{30s, 10s, {{0, 20s}, {2'000'000'000, 10s}}},
           Row{30s, 0s, {{0, 30s}, {2'000'000'000, 0s}}},
           Row{30s, 30s, {{0, 0s}, {2'000'000'000, 30s}}},
           Row{1s, 0s, {{0, 1s}, {2'000'000'000, 0s}}},
           Row{10500ms, 1200ms, {{0, 9s}, {2'000'000'000, 1s}}},
           Row{0s, 0s, {}},
       }) {
    CAPTURE(to_string(total));
    CHECK(value_of(make_shutdown_groups({.grace_period = total, .critical_pods = critical})) == groups);
  }
}

TEST_CASE("groups by priority are sorted, and there even where all of them are zero") {
  CHECK(value_of(make_shutdown_groups({.by_priority = {{100, 5s}, {-10, 7s}, {0, 0s}}})) ==
        ShutdownGroups{{-10, 7s}, {0, 0s}, {100, 5s}});
  CHECK(value_of(make_shutdown_groups({.by_priority = {{100, 0s}, {0, 0s}}})) == ShutdownGroups{{0, 0s}, {100, 0s}});
}

TEST_CASE("groups by priority beside a pair are an error") {
  const std::string both = "shutdownGracePeriodByPodPriority: cannot be specified together with shutdownGracePeriod";
  CHECK(error_of(make_shutdown_groups({.grace_period = 30s, .by_priority = {{0, 1s}}})) == both);
  CHECK(error_of(make_shutdown_groups({.grace_period = 30s, .critical_pods = 10s, .by_priority = {{0, 0s}}})) == both);
  // What is wrong with the pair itself comes first.
  CHECK(error_of(make_shutdown_groups({.critical_pods = 10s, .by_priority = {{0, 1s}}})) ==
        "shutdownGracePeriodCriticalPods: 10s must not be more than shutdownGracePeriod, 0s");
}

TEST_CASE("what the kubelet refuses is refused, with the key that is at fault") {
  const auto pair = [](Duration total, Duration critical) {
    return error_of(make_shutdown_groups({.grace_period = total, .critical_pods = critical}));
  };
  CHECK(pair(-1s, 0s) == "shutdownGracePeriod: -1s must be either zero or at least 1s");
  CHECK(pair(999ms, 0s) == "shutdownGracePeriod: 999ms must be either zero or at least 1s");
  CHECK(pair(10s, 1ms) == "shutdownGracePeriodCriticalPods: 1ms must be either zero or at least 1s");
  CHECK(pair(10s, -5s) == "shutdownGracePeriodCriticalPods: -5s must be either zero or at least 1s");
  CHECK(pair(10s, 11s) == "shutdownGracePeriodCriticalPods: 11s must not be more than shutdownGracePeriod, 10s");
  CHECK(pair(0s, 5s) == "shutdownGracePeriodCriticalPods: 5s must not be more than shutdownGracePeriod, 0s");
  CHECK(error_of(make_shutdown_groups({.by_priority = {{7, -1s}}})) ==
        "shutdownGracePeriodByPodPriority: the grace period of priority 7 must be from 0 to 1000000000 seconds");
}

TEST_CASE("no shutdown takes longer than 10^9 s, however it is divided") {
  constexpr auto most = 1'000'000'000s;
  CHECK(value_of(make_shutdown_groups({.grace_period = most})).front().grace_period == most);
  CHECK(error_of(make_shutdown_groups({.grace_period = most + 1s})) ==
        "shutdownGracePeriod: 277777h46m41s must be at most 1000000000 seconds");
  CHECK(total_grace_period(value_of(make_shutdown_groups({.by_priority = {{0, most - 1s}, {1, 1s}}}))) == most);
  CHECK(error_of(make_shutdown_groups({.by_priority = {{0, most}, {1, 1s}}})) ==
        "shutdownGracePeriodByPodPriority: the grace periods of all groups together must be at most 1000000000 "
        "seconds");
}

TEST_CASE("a pod joins the highest group that is not above it, else the lowest") {
  const ShutdownGroups groups{{-10, 1s}, {0, 2s}, {100, 3s}, {2'000'000'000, 4s}};
  struct Row {
    std::int32_t priority;
    std::size_t group;
  };
  for (const auto& [priority, group] :
       {Row{std::numeric_limits<std::int32_t>::min(), 0}, Row{-11, 0}, Row{-10, 0}, Row{-1, 0}, Row{0, 1}, Row{99, 1},
        Row{100, 2}, Row{101, 2}, Row{1'999'999'999, 2}, Row{2'000'000'000, 3}, Row{2'000'001'000, 3},
        Row{std::numeric_limits<std::int32_t>::max(), 3}}) {
    CAPTURE(priority);
    CHECK(shutdown_group_of(groups, priority) == group);
  }
}

TEST_CASE("the grace period is the smaller of the group's and the pod's own, 30 s where the spec says nothing") {
  const ShutdownGroup minute{0, 60s};
  const ShutdownGroup moment{0, 5s};
  CHECK(shutdown_grace_period(minute, *pod_of("p", 0)) == 30s);
  CHECK(shutdown_grace_period(moment, *pod_of("p", 0)) == 5s);
  CHECK(shutdown_grace_period(minute, *pod_of("p", 0, 45)) == 45s);
  CHECK(shutdown_grace_period(minute, *pod_of("p", 0, 3600)) == 60s);
  CHECK(shutdown_grace_period(minute, *pod_of("p", 0, 0)) == 1s);
  CHECK(shutdown_grace_period(minute, *pod_of("p", 0, -1)) == 1s);
  CHECK(shutdown_grace_period(minute, *pod_of("p", 0, std::numeric_limits<std::int64_t>::max())) == 60s);
  CHECK(shutdown_grace_period({0, 0s}, *pod_of("p", 0)) == 0s);
}

TEST_CASE("the plan has the groups that somebody is in; a static pod goes by its priority") {
  const ShutdownGroups groups{{0, 20s}, {1000, 10s}, {2'000'000'000, 5s}};
  auto fixed = fixture::with_annotation(fixture::pod("static"), "kubernetes.io/config.source", "file");
  const auto stages = plan_shutdown(
      groups, {pod_of("vital", 2'000'001'000), pod_of("a", {}), pod_of("b", 999), std::make_shared<const Pod>(fixed)});
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].group == 0);
  CHECK(names(stages[0].pods) == "a b static");
  CHECK(stages[1].group == 2);
  CHECK(names(stages[1].pods) == "vital");
  CHECK(plan_shutdown(groups, {}).empty());
  CHECK(plan_shutdown({}, {pod_of("a", 0)}).empty());
}

TEST_CASE("property: each pod is in exactly one group, groups rise, and the periods make up what was promised") {
  for (const auto seed : fixture::seeds(500)) {
    CAPTURE(seed);
    Random random{seed};
    const auto any_priority = [&] {
      return static_cast<std::int32_t>(random.chance(20) ? random.between(1'999'999'990, 2'000'000'010)
                                                         : random.between(-20, 20));
    };
    ShutdownSettings settings;
    Duration promised{};
    if (random.chance(50)) {
      settings.grace_period = std::chrono::seconds(random.between(1, 300));
      settings.critical_pods = std::chrono::seconds(random.between(0, settings.grace_period / 1s));
      promised = settings.grace_period;
    } else {
      for (auto left = random.between(1, 6); left > 0; --left) {
        settings.by_priority.push_back({any_priority(), std::chrono::seconds(random.between(0, 60))});
        promised += settings.by_priority.back().grace_period;
      }
    }
    const auto groups = value_of(make_shutdown_groups(settings));
    CHECK(total_grace_period(groups) == promised);
    CHECK(std::ranges::is_sorted(groups, {}, &ShutdownGroup::priority));
    if (groups.empty()) continue;

    PodList pods;
    for (auto left = random.between(0, 30); left > 0; --left)
      pods.push_back(pod_of("p" + std::to_string(left), any_priority(), random.between(-5, 100)));
    std::multiset<std::string> planned;
    std::optional<std::size_t> before;
    for (const auto& stage : plan_shutdown(groups, pods)) {
      CHECK_FALSE(stage.pods.empty());
      CHECK((!before || *before < stage.group));
      before = stage.group;
      for (const auto& pod : stage.pods) {
        planned.insert(pod->name);
        const auto& group = groups[stage.group];
        CHECK((group.priority <= *pod->priority || stage.group == 0));
        for (const auto& other : groups) CHECK((other.priority <= group.priority || other.priority > *pod->priority));
        const auto grace = shutdown_grace_period(group, *pod);
        CHECK(grace >= 0s);
        CHECK(grace <= group.grace_period);
        CHECK(grace <= std::chrono::seconds(std::max<std::int64_t>(1, *pod->termination_grace_period_seconds)));
      }
    }
    CHECK(planned.size() == pods.size());
    for (const auto& pod : pods) CHECK(planned.count(pod->name) == 1);
  }
}

}  // namespace
}  // namespace evictd::core::shutdown_plan_test
