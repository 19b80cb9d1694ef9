#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "core/grace_period.hpp"
#include "core/local_storage.hpp"
#include "core/synchronizer.hpp"
#include "fixture/node.hpp"
#include "fixture/random.hpp"

// Random scenarios against a second, naive account of what was met since when.

namespace evictd::core::synchronizer_property_test {
namespace {

using fixture::Random;
using fixture::seeds;

constexpr std::int64_t capacity = 1000;

EvictionPolicy any_policy(Random& random) {
  EvictionPolicy policy;
  policy.pressure_transition_period = std::chrono::seconds(random.between(1, 300));
  policy.local_storage_isolation = random.chance(70);
  for (const auto signal : all_signals()) {
    if (!random.chance(40)) continue;
    for (const bool hard : {true, false}) {
      if (!random.chance(60)) continue;
      auto threshold = fixture::threshold(signal, fixture::share(static_cast<float>(random.between(0, 60))));
      if (random.chance(50)) threshold.value = {Quantity::count(random.between(1, 600))};
      if (!hard) threshold.grace = std::chrono::seconds(random.between(1, 120));
      if (random.chance(40)) threshold.min_reclaim = ThresholdValue{Quantity::count(random.between(0, 300))};
      policy.thresholds.push_back(threshold);
    }
  }
  sort_by_precedence(policy.thresholds);
  return policy;
}

PodPtr any_pod(Random& random, std::int64_t number) {
  auto pod = fixture::pod("p" + std::to_string(number));
  pod.priority = static_cast<std::int32_t>(random.chance(25) ? system_critical_priority : random.between(-5, 5));
  if (random.chance(10)) pod.annotations["kubernetes.io/config.mirror"] = "x";
  if (random.chance(30)) pod.volumes = {fixture::empty_dir("cache", "50")};
  return std::make_shared<const Pod>(pod);
}

std::optional<PodUsage> any_usage(Random& random) {
  if (random.chance(15)) return std::nullopt;
  PodUsage usage{.working_set = random.between(0, 100), .processes = random.between(0, 100)};
  usage.volumes["cache"] = {.bytes = random.between(0, 55), .inodes = random.between(0, 10)};
  return usage;
}

Observations any_observations(Random& random, Instant now) {
  Observations observations;
  for (const auto signal : all_signals()) {
    if (random.chance(15)) continue;
    observations[signal] = Observation{.available = random.between(-10, capacity), .capacity = capacity};
    if (random.chance(40)) observations[signal]->time = now - std::chrono::seconds(random.between(0, 30));
  }
  return observations;
}

/// What the rules say of the passes so far, kept as simply as can be.
class Account {
 public:
  struct Known {
    Threshold threshold;
    Instant since;
    bool acting = false;
  };

  void pass(const std::vector<Threshold>& thresholds, const Observations& observations, Duration transition,
            Instant now) {
    std::vector<Known> known;
    const auto remember = [&](const Threshold& threshold) {
      if (std::ranges::any_of(known, [&](const Known& k) { return k.threshold.same_as(threshold); })) return;
      const auto before = std::ranges::find_if(known_, [&](const Known& k) { return k.threshold.same_as(threshold); });
      const auto since = before == known_.end() ? now : before->since;
      known.push_back({threshold, since, now - since >= threshold.grace});
      last_met_[condition_of(threshold.signal)] = now;
    };
    for (const auto& threshold : thresholds)
      if (is_met(threshold, observations, Enforce::value_only)) remember(threshold);
    for (const auto& [threshold, since, acting] : known_)
      if (acting && is_met(threshold, observations, Enforce::min_reclaim)) remember(threshold);
    known_ = std::move(known);
    conditions_.clear();
    for (const auto& [condition, time] : last_met_)
      if (now - time < transition) conditions_.insert(condition);
  }

  /// A restart forgets what is not in force.
  void restart(std::span<const Threshold> thresholds) {
    std::erase_if(known_, [&](const Known& known) {
      return std::ranges::none_of(thresholds, [&](const Threshold& t) { return t.same_as(known.threshold); });
    });
  }

  [[nodiscard]] bool acts(const Threshold& threshold) const {
    return std::ranges::any_of(known_, [&](const Known& k) { return k.acting && k.threshold.same_as(threshold); });
  }
  [[nodiscard]] const NodeConditions& conditions() const { return conditions_; }

 private:
  std::vector<Known> known_;
  std::map<NodeCondition, Instant> last_met_;
  NodeConditions conditions_;
};

/// One random life of a node.
class Life {
 public:
  Life(std::uint64_t seed, bool restarts)
      : random_{seed},
        restarts_{restarts},
        in_flight_{random_.chance(50)},
        policy_{any_policy(random_)},
        layout_{.dedicated_imagefs = random_.chance(50), .split = random_.chance(20)},
        synchronizer_{policy_, {.in_flight_reclaim = in_flight_}} {
    (void)synchronizer_.tell(LayoutDetected{layout_}, now_);
  }

  void run() {
    for (int i = 0; i < 60; ++i) {
      now_ += std::chrono::seconds(random_.between(0, 90));
      if (restarts_ && random_.chance(20)) restart();
      change_pods();
      pass();
    }
  }

 private:
  /// Another one goes on with what this one knew. What was last seen of the node it does not know: all is fresh to it.
  void restart() {
    const auto state = synchronizer_.state();
    synchronizer_ = Synchronizer{policy_, {.in_flight_reclaim = in_flight_}};
    synchronizer_.restore(state, now_);
    account_.restart(synchronizer_.thresholds());
    const auto restored = synchronizer_.state();
    CHECK(restored.pressure.last_observed == state.pressure.last_observed);
    CHECK(restored.in_flight == state.in_flight);
    CHECK(restored.back_off == state.back_off);
    CHECK(restored.rate_limit == state.rate_limit);
    CHECK(restored.layout == state.layout);
    CHECK(synchronizer_.conditions() == account_.conditions());
    previous_ = {};
  }

  void change_pods() {
    if (random_.chance(40)) pods_.push_back(any_pod(random_, ++created_));
    if (!pods_.empty() && random_.chance(20))
      pods_.erase(pods_.begin() + random_.between(0, static_cast<std::int64_t>(pods_.size()) - 1));
    if (random_.chance(20))
      tell(CleanupEnded{.uid = "p" + std::to_string(random_.between(1, created_ + 1)), .released = random_.chance(70)});
    tell(PodsChanged{std::make_shared<const PodList>(pods_)});
  }

  void pass() {
    evicted_ = 0;
    limits_ = 0;
    observations_ = any_observations(random_, now_);
    std::vector<Threshold> thresholds(synchronizer_.thresholds().begin(), synchronizer_.thresholds().end());
    if (!synchronizer_.state().containerfs_derived) thresholds = with_given_containerfs_replaced(thresholds, layout_);
    account_.pass(thresholds, observations_, policy_.pressure_transition_period, now_);
    drive(synchronizer_.begin(observations_));
    CHECK(synchronizer_.conditions() == account_.conditions());
    CHECK(evicted_ <= 1);
    CHECK((evicted_ == 0 || limits_ == 0));
    previous_ = observations_;
  }

  void tell(const Event& event) {
    if (const auto wake_at = synchronizer_.tell(event, now_)) check(*wake_at);
  }

  void drive(Pass pass) {
    for (Answer answer; const auto action = pass.resume(answer, now_);) {
      answer = {};
      std::visit([&](const auto& known) { check(known); }, *action);
      if (const auto* reading = std::get_if<ReadPodUsage>(&*action)) answer = measure(*reading);
      if (std::holds_alternative<ReclaimNode>(*action)) answer = NodeReclaimed{any_observations(random_, now_)};
    }
  }

  PodsMeasured measure(const ReadPodUsage& action) {
    usage_.clear();
    for (std::size_t i = 0; i < action.pods->size(); ++i) usage_.push_back(any_usage(random_));
    measured_ = action.pods;
    return {.usage = usage_};
  }

  void check(const ReadPodUsage&) {}
  void check(const ReclaimNode& action) {
    CHECK((action.containers || action.images));
    CHECK(account_.acts(action.threshold));
  }

  void check(const Eviction& action) {
    CHECK_FALSE(is_critical(*action.pod));
    if (!action.acted) return check_limit(action);
    ++evicted_;
    const auto& [threshold, observation] = *action.acted;
    CHECK(account_.acts(threshold));
    CHECK(observations_[threshold.signal] == observation);
    CHECK(is_met(threshold, observations_, Enforce::min_reclaim));
    const auto& before = previous_[threshold.signal];
    CHECK((!before || !observation.time || !before->time || *observation.time > *before->time));
    if (threshold.is_hard())
      CHECK(action.grace_period == Duration::zero());
    else
      CHECK(action.grace_period >= least_grace_period);
    check_ranking(action);
  }

  void check_limit(const Eviction& action) {
    ++limits_;
    CHECK(policy_.local_storage_isolation);
    const auto position = std::ranges::find(*measured_, action.pod) - measured_->begin();
    const auto& usage = usage_.at(static_cast<std::size_t>(position));
    REQUIRE(usage.has_value());
    CHECK(usage->volumes.at("cache").bytes > 50);
    CHECK_FALSE(action.pod->volumes.empty());
  }

  void check_ranking(const Eviction& action) {
    std::set<PodPtr> named;
    for (const auto& ranked : action.ranking) named.insert(ranked.pod);
    CHECK(named.size() == action.ranking.size());
    CHECK(std::ranges::all_of(
        named, [&](const PodPtr& pod) { return std::ranges::find(*measured_, pod) != measured_->end(); }));
    const auto first = std::ranges::find_if(action.ranking, [](const RankedPod& r) { return !is_critical(*r.pod); });
    CHECK(first->pod == action.pod);
    if (!in_flight_) CHECK(action.ranking == rank(action.acted->threshold.signal, *measured_, usage_, layout_));
  }

  void check(const NoVictim& action) {
    CHECK(account_.acts(action.acted.threshold));
    CHECK(std::ranges::all_of(action.ranking, [](const RankedPod& ranked) { return is_critical(*ranked.pod); }));
  }

  void check(const ReportConditions& action) { CHECK(action.conditions == account_.conditions()); }
  void check(const ReportCrossing& action) {
    CHECK(is_met(action.acted.threshold, observations_, Enforce::value_only));
  }
  void check(const WakeAt& action) { CHECK((!action.time || *action.time > now_)); }
  void check(const ArmLevels&) {}
  void check(const RateLimited&) { FAIL_CHECK("no limit was set"); }
  void check(const Recovered&) { FAIL_CHECK("nothing was measured anew"); }

  Random random_;
  bool restarts_;
  bool in_flight_;
  EvictionPolicy policy_;
  FilesystemLayout layout_;
  Synchronizer synchronizer_;
  Account account_;
  Instant now_{};
  std::int64_t created_ = 0;
  PodList pods_;
  Observations observations_;
  Observations previous_;
  PodListPtr measured_;
  std::vector<std::optional<PodUsage>> usage_;
  int evicted_ = 0;  // in this pass, for a threshold
  int limits_ = 0;   // in this pass, for a limit
};

}  // namespace

TEST_CASE("property: only what is met evicts, one pod a pass, never a critical one; conditions hold their time") {
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    Life{seed, false}.run();
  }
}

TEST_CASE("property: restarts change nothing of that") {
  for (const auto seed : seeds(400)) {
    CAPTURE(seed);
    Life{seed, true}.run();
  }
}

}  // namespace evictd::core::synchronizer_property_test
