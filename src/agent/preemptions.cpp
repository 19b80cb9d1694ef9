#include "agent/preemptions.hpp"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "async/spawn.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/grace_period.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

/// As long as what a pod was given is kept for it.
constexpr core::Duration longest_way = 5min;

}  // namespace

struct Preemptions::Awaited {
  std::map<std::string, core::Instant, std::less<>> until;  // by uid
  std::function<void()> ended;

  void end(const std::string& uid) {
    if (until.erase(uid) > 0) ended();
  }
  /// Nothing: the pod is not waited for.
  [[nodiscard]] std::optional<core::Duration> left(const std::string& uid, core::Instant now) const {
    const auto found = until.find(uid);
    if (found == until.end()) return std::nullopt;
    return found->second - now;
  }

  /// A pod may have any grace period, and end long before that: whether it has is looked up now and then, so that no
  /// coroutine outlives the wait by more than this.
  static asio::awaitable<void> give_up_when_due(std::weak_ptr<Awaited> weak, Clock& clock, core::PodPtr victim) {
    constexpr core::Duration longest_sleep = 10s;
    const auto begun = clock.now();
    const auto left = [&weak, &clock, &victim]() -> std::optional<core::Duration> {
      const auto awaited = weak.lock();
      return awaited ? awaited->left(victim->uid, clock.now()) : std::nullopt;
    };
    auto rest = left();
    while (rest && *rest > core::Duration::zero()) {
      co_await clock.sleep(std::min(*rest, longest_sleep));
      rest = left();
    }
    if (!rest) co_return;
    os::log_warning("{} has not ended {} after it was preempted: whoever needs its room does not wait any longer",
                    victim->key(), core::to_string(clock.now() - begun));
    if (const auto awaited = weak.lock()) awaited->end(victim->uid);
  }
};

Preemptions::Preemptions(Parts parts, std::function<void()> ended)
    : parts_{std::move(parts)}, awaited_{std::make_shared<Awaited>()} {
  awaited_->ended = std::move(ended);
  parts_.pods.tell(*this);
}

void Preemptions::begin(const core::PodPtr& victim, bool was_told) {
  const auto& uid = victim->uid;
  const auto now = parts_.clock.now();
  const auto patience = core::kill_timeout(core::grace_period_of(*victim));
  awaited_->until.insert_or_assign(uid, now + patience);
  if (parts_.evictions.acts() && parts_.pods.find(uid) == nullptr) {
    os::log_info("{} is preempted before it has come: it ends when it does", victim->key());
    coming_.insert_or_assign(uid, Coming{victim, now + longest_way});
    if (!was_told) return awaited_->end(uid);
    awaited_->until.insert_or_assign(uid, now + std::min(patience, longest_way));
  } else {
    displace(victim, uid);
  }
  if (is_awaited(uid))
    async::spawn(parts_.reactor, Awaited::give_up_when_due(awaited_, parts_.clock, victim),
                 "waiting for a preempted pod");
}

void Preemptions::displace(const core::PodPtr& pod, const std::string& victim) {
  const std::weak_ptr weak{awaited_};
  parts_.evictions.displace(pod, {core::Displacement::Preemption, "Preempted in order to admit critical pod"},
                            core::grace_period_of(*pod), [weak, victim](bool) {
                              if (const auto awaited = weak.lock()) awaited->end(victim);
                            });
}

void Preemptions::forget(const std::string& uid) {
  if (coming_.erase(uid) > 0) awaited_->end(uid);
}

void Preemptions::pods_changed(const core::PodList& pods) {
  const auto now = parts_.clock.now();
  if (!parts_.evictions.acts()) {
    // One that comes while evictd only watches is ended once it acts, however long that takes.
    for (auto& [uid, coming] : coming_) coming.until = now + longest_way;
    return;
  }
  std::erase_if(coming_, [now](const auto& entry) { return entry.second.until <= now; });
  if (coming_.empty()) return;
  for (const auto& pod : pods) {
    auto come = coming_.extract(pod->uid);
    if (!come) come = coming_.extract(pod->key());
    if (come) displace(pod, come.key());
  }
}

bool Preemptions::is_awaited(std::string_view uid) const { return awaited_->until.contains(uid); }

bool Preemptions::any_awaited() const { return !awaited_->until.empty(); }

}  // namespace evictd::agent
