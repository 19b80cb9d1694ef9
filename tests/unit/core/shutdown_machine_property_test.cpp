#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/shutdown_machine.hpp"
#include "fixture/pods.hpp"
#include "fixture/random.hpp"
#include "fixture/result.hpp"

// Random shutdowns, with pods that end early, late or never, evictds that are killed at any moment, and shutdowns that
// are called off.

namespace evictd::core::shutdown_machine_property_test {
namespace {

using namespace std::chrono_literals;
using fixture::Random;

class Life {
 public:
  explicit Life(std::uint64_t seed) : random_{seed} {
    ShutdownSettings settings;
    for (auto left = random_.between(1, 4); left > 0; --left)
      settings.by_priority.push_back(
          {static_cast<std::int32_t>(random_.between(-3, 3)), std::chrono::seconds(random_.between(0, 20))});
    settings.by_priority.front().grace_period += 1s;  // not nothing at all
    groups_ = fixture::value_of(make_shutdown_groups(settings));
    for (auto left = random_.between(0, 8); left > 0; --left) {
      auto pod = fixture::with_priority(fixture::pod("p" + std::to_string(left)),
                                        static_cast<std::int32_t>(random_.between(-5, 5)));
      pod.termination_grace_period_seconds = random_.between(0, 30);
      pods_.push_back(std::make_shared<const Pod>(std::move(pod)));
    }
    machine_.emplace(groups_);
  }

  void run() {
    step(ShutdownPending{false});
    CHECK(locked_);
    now_ += 100s;
    begun_ = now_;
    step(ShutdownPending{true});
    const int turns = static_cast<int>(random_.between(5, 60));
    for (int turn = 0; turn < turns && !cancelled_; ++turn) {
      now_ += std::chrono::milliseconds(random_.between(0, 2500));
      something_happens();
      CHECK(machine_->shutting_down() != cancelled_);
    }
    if (cancelled_) {
      CHECK(locked_);
      CHECK_FALSE(kept_.has_value());
      return;
    }
    // However it went: once the promised time is over, nothing holds the shutdown up.
    now_ = std::max(now_, begun_ + total_grace_period(groups_)) + 1s;
    if (wants_list_) list();
    step(TimePassed{});
    CHECK(machine_->over());
    CHECK_FALSE(locked_);
    CHECK(kept_.has_value());
  }

 private:
  void something_happens() {
    const auto choice = random_.between(1, 100);
    if (choice <= 3) {
      cancelled_ = true;
      return step(ShutdownPending{false});
    }
    if (choice <= 15) return restart();
    if (choice <= 50 && wants_list_) return list();
    if (choice <= 75 && !pods_.empty()) {
      const auto index = static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(pods_.size()) - 1));
      const auto uid = pods_[index]->uid;
      if (!told_.contains(uid)) return;
      gone_.insert(uid);
      return step(PodEnded{uid});
    }
    step(TimePassed{});
  }

  /// Killed, at whatever it was doing; logind takes that for the lock's release.
  void restart() {
    locked_ = false;
    told_in_this_life_.clear();
    wants_list_ = false;
    machine_.emplace(groups_, kept_);
    obey(machine_->start(now_));
    CHECK(machine_->shutting_down());
    step(ShutdownPending{true});
  }

  /// Those that were killed unnoticed are missing.
  void list() {
    wants_list_ = false;
    auto listed = std::make_shared<PodList>();
    for (const auto& pod : pods_)
      if (!gone_.contains(pod->uid)) listed->push_back(pod);
    step(PodsListed{listed});
  }

  void step(const ShutdownEvent& event) { obey(machine_->step(event, now_)); }

  void obey(const ShutdownActions& actions) {
    for (const auto& action : actions) std::visit([this](const auto& known) { carry_out(known); }, action);
  }

  void carry_out(const ListPods&) { wants_list_ = true; }
  void carry_out(const WakeMeAt&) {}
  void carry_out(const TellShutdown& told) {
    for (const auto& pod : told.left) CHECK_FALSE(gone_.contains(pod->uid));
  }
  void carry_out(const TakeLock&) { locked_ = true; }
  void carry_out(const ReleaseLock&) { locked_ = false; }
  void carry_out(const KeepProgress& keep) { kept_ = keep.progress; }
  void carry_out(const EndPod& end) {
    const auto& uid = end.pod->uid;
    CAPTURE(uid);
    CHECK_FALSE(gone_.contains(uid));
    CHECK(told_in_this_life_.insert(uid).second);
    REQUIRE(kept_.has_value());
    CHECK(kept_->told.contains(uid));  // it was kept before it was done
    const auto group = shutdown_group_of(groups_, *end.pod->priority);
    const auto grace = shutdown_grace_period(groups_[group], *end.pod);
    CHECK(end.grace_period >= 0s);
    const auto first = told_.try_emplace(uid, now_).first->second;
    CHECK(now_ + end.grace_period <= std::max(now_, first + grace));  // never a fresh period
    CHECK(now_ + end.grace_period <= std::max(now_, begun_ + total_grace_period(groups_) + 1s));
    for (const auto& other : pods_)
      if (told_.contains(other->uid)) last_group_ = std::max(last_group_, shutdown_group_of(groups_, *other->priority));
    if (first == now_) CHECK(group >= last_group_);
  }

  Random random_;
  ShutdownGroups groups_;
  PodList pods_;
  std::optional<ShutdownMachine> machine_;
  Instant now_{};
  Instant begun_{};
  bool wants_list_ = false;
  bool locked_ = false;
  bool cancelled_ = false;
  std::optional<ShutdownProgress> kept_;
  std::map<std::string, Instant> told_;  // when first
  std::set<std::string> told_in_this_life_;
  std::set<std::string> gone_;
  std::size_t last_group_ = 0;
};

}  // namespace

TEST_CASE(
    "property: pods end in the groups' order, once, in the time that was promised, however often evictd is killed") {
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    Life{seed}.run();
  }
}

}  // namespace evictd::core::shutdown_machine_property_test
