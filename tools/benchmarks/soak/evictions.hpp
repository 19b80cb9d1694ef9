#pragma once
#include <evictd.pb.h>
#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "benchmarks/soak/findings.hpp"

namespace bench::soak {

using evictd::v1::Event;

/// One eviction, as the events tell it.
struct Eviction {
  std::string pod;  ///< "default/hog-1"
  std::string uid;
  int intended = 0;  ///< how often the event came, as all that follows
  int killed = 0;
  int released = 0;
  int cleaned = 0;
  int failed_steps = 0;  ///< the runtime did not answer, say, and the eviction went on without it
  bool timed_out = false;
  std::optional<double> kill_ms{};  ///< from the wake-up on
  std::string story{};              ///< what was told, for people
};

/// What a stream of all events says of evictions. From any thread.
class Evictions {
 public:
  void read(const Event& event) {
    const std::lock_guard lock{mutex_};
    if (event.kind() == Event::SOURCE_DEGRADED && event.source_degraded().state().starts_with("failed"))
      ++degraded_[event.source_degraded().source()];
    if (event.eviction_id() == 0) return;
    auto& eviction = evictions_[event.eviction_id()];
    // One that begins with anything but its intent has none of that name and uid to compare with.
    if (eviction.uid.empty()) {
      eviction.pod = event.pod().namespace_() + "/" + event.pod().name();
      eviction.uid = event.pod().uid();
    }
    eviction.story += fmt::format("; {} {} {} ({})", event.sequence(), Event::Kind_Name(event.kind()),
                                  event.wake().source(), event.message());
    switch (event.kind()) {
      case Event::EVICTION_INTENDED: ++eviction.intended; break;
      case Event::CONTAINERS_KILLED:
        ++eviction.killed;
        if (const auto stage = event.stages().find("killed"); stage != event.stages().end())
          eviction.kill_ms = static_cast<double>(stage->second) / 1000;
        break;
      case Event::MEMORY_RELEASED: ++eviction.released; break;
      case Event::CLEANUP_DONE:
        ++eviction.cleaned;
        eviction.timed_out = event.cleanup_done().timed_out();
        break;
      case Event::EVICTION_FAILED: ++eviction.failed_steps; break;
      default: break;
    }
  }

  /// Of the pod with this uid, the latest.
  [[nodiscard]] std::optional<Eviction> of(const std::string& uid) const {
    const std::lock_guard lock{mutex_};
    for (const auto& eviction : std::views::values(evictions_) | std::views::reverse)
      if (eviction.uid == uid) return eviction;
    return std::nullopt;
  }
  [[nodiscard]] std::vector<Eviction> all() const {
    const std::lock_guard lock{mutex_};
    const auto values = std::views::values(evictions_);
    return {values.begin(), values.end()};
  }
  /// How often a source was told to be degraded: "cri", "memcg", "turns", …
  [[nodiscard]] std::map<std::string, int> degraded() const {
    const std::lock_guard lock{mutex_};
    return degraded_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Eviction> evictions_;  // by the number of the intent
  std::map<std::string, int> degraded_;
};

/// What is wrong with an eviction that is over: each of its events is told once, and nothing of the pod is left in
/// time. Empty: nothing.
[[nodiscard]] inline std::string flaw(const Eviction& eviction) {
  if (eviction.intended == 1 && eviction.killed == 1 && eviction.released == 1 && eviction.cleaned == 1)
    return eviction.timed_out ? fmt::format("the cleanup of {} took too long{}", eviction.pod, eviction.story) : "";
  return fmt::format("the eviction of {} was told {}x as intended, {}x as killed, {}x as released, {}x as cleaned up{}",
                     eviction.pod, eviction.intended, eviction.killed, eviction.released, eviction.cleaned,
                     eviction.story);
}

/// Whether a pod of this key is one that grew beyond the threshold, by its name.
[[nodiscard]] inline bool may_go(const std::string& pod) {
  return pod.starts_with("default/hog-") || pod.starts_with("default/brief-");
}

/// Whether each was told once, hit whom it may and was over in time; how many there were, by what became of them.
inline boost::json::object judge_evictions(const std::vector<Eviction>& evictions, Findings& findings) {
  int wrong_victims = 0;
  int failed_steps = 0;  // the evictions went on without them
  for (const auto& eviction : evictions) {
    failed_steps += eviction.failed_steps;
    if (const auto wrong = flaw(eviction); !wrong.empty()) findings.add(wrong);
    if (may_go(eviction.pod)) continue;
    ++wrong_victims;
    findings.add(fmt::format("{} was evicted, which had not to go", eviction.pod));
  }
  return {{"all", evictions.size()}, {"wrongVictims", wrong_victims}, {"failedSteps", failed_steps}};
}

}  // namespace bench::soak
