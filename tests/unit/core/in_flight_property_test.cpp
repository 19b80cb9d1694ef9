#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/synchronizer.hpp"
#include "fixture/guard.hpp"
#include "fixture/random.hpp"

// A node whose victims give their memory back bit by bit, while others go on growing.

namespace evictd::core::in_flight_property_test {
namespace {

using fixture::Random;
using fixture::seeds;

class Node {
 public:
  explicit Node(std::uint64_t seed) : random_{seed}, required_{random_.between(50, 300)}, synchronizer_{policy(), {}} {
    for (int i = 0; i < 12; ++i) start(i);
    tell(PodsChanged{std::make_shared<const PodList>(pods_)});
  }

  void run() {
    for (int i = 0; i < 80; ++i) {
      now_ += std::chrono::milliseconds(random_.between(1, 50));
      live();
      pass();
    }
  }

 private:
  struct Leaving {
    std::int64_t holds = 0;
  };

  [[nodiscard]] EvictionPolicy policy() const {
    return fixture::policy({{.signal = Signal::MemoryAvailable, .value = {Quantity::bytes(required_)}}});
  }

  void start(int number) {
    auto pod = fixture::pod("p" + std::to_string(number));
    if (random_.chance(15)) pod.priority = system_critical_priority;
    pods_.push_back(std::make_shared<const Pod>(pod));
    usage_[pod.uid] = random_.between(1, 60);
  }

  /// Pods grow, victims give back; a victim that holds nothing any more is cleaned up.
  void live() {
    for (const auto& pod : pods_)
      if (!leaving_.contains(pod->uid) && random_.chance(30)) usage_[pod->uid] += random_.between(0, 40);
    for (auto entry = leaving_.begin(); entry != leaving_.end();) {
      entry->second.holds -= random_.between(0, entry->second.holds);
      usage_[entry->first] = entry->second.holds;
      if (entry->second.holds > 0) {
        ++entry;
        continue;
      }
      std::erase_if(pods_, [&](const PodPtr& pod) { return pod->uid == entry->first; });
      tell(CleanupEnded{.uid = entry->first});
      usage_.erase(entry->first);
      entry = leaving_.erase(entry);
      tell(PodsChanged{std::make_shared<const PodList>(pods_)});
    }
  }

  void pass() {
    std::int64_t used = 0;
    for (const auto& [uid, bytes] : usage_) used += bytes;
    const auto available = capacity - used;
    std::int64_t coming = 0;
    std::vector<Releasing> releasing;
    for (const auto& [uid, leaving] : leaving_) {
      coming += leaving.holds;
      releasing.push_back({uid, leaving.holds});
    }
    const bool is_short = available + coming < required_;
    const bool has_victim = std::ranges::any_of(
        pods_, [&](const PodPtr& pod) { return !is_critical(*pod) && !leaving_.contains(pod->uid); });
    CAPTURE(available);
    CAPTURE(coming);
    CAPTURE(required_);

    evicted_ = 0;
    asked_ = false;
    drive(synchronizer_.begin(fixture::observed({{Signal::MemoryAvailable, available, capacity}}), releasing));
    CHECK(evicted_ == (is_short && has_victim ? 1 : 0));
    if (!is_short) CHECK_FALSE(asked_);
  }

  void tell(const Event& event) { (void)synchronizer_.tell(event, now_); }

  void drive(Pass pass) {
    for (Answer answer; const auto action = pass.resume(answer, now_);) {
      answer = {};
      if (const auto* reading = std::get_if<ReadPodUsage>(&*action)) answer = measure(*reading);
      if (const auto* evict = std::get_if<Eviction>(&*action)) {
        CHECK_FALSE(leaving_.contains(evict->pod->uid));
        leaving_[evict->pod->uid] = {.holds = usage_.at(evict->pod->uid)};
        ++evicted_;
      }
    }
  }

  PodsMeasured measure(const ReadPodUsage& reading) {
    asked_ = true;
    PodsMeasured measured;
    for (const auto& pod : *reading.pods) measured.usage.push_back(fixture::memory_usage(usage_.at(pod->uid)));
    return measured;
  }

  static constexpr std::int64_t capacity = 1000;
  Random random_;
  std::int64_t required_;
  Synchronizer synchronizer_;
  Instant now_{};
  PodList pods_;
  std::map<std::string, std::int64_t> usage_;
  std::map<std::string, Leaving> leaving_;
  int evicted_ = 0;
  bool asked_ = false;
};

}  // namespace

TEST_CASE("property: a second pod goes exactly when what is on its way does not suffice, and then at once") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    Node{seed}.run();
  }
}

}  // namespace evictd::core::in_flight_property_test
