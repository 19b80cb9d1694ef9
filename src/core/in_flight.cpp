#include "core/in_flight.hpp"

#include <algorithm>
#include <variant>

#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/event.hpp"
#include "core/filesystem_layout.hpp"
#include "core/filesystem_usage.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/ranked_pod.hpp"
#include "core/saturating.hpp"
#include "core/signal.hpp"
#include "core/threshold.hpp"

namespace evictd::core {
namespace {

/// No list of pods is older: they are made every few seconds, and the calls for them have deadlines.
constexpr Duration oldest_list = std::chrono::minutes{1};

/// How what comes back from an eviction helps a signal.
enum class Help : std::uint8_t { none, by_the_amount, by_anything };

/// What the pod was chosen for. Memory helps both memory signals, whatever the pod went for if it was not chosen by
/// what it holds. Disk space helps all signals of the same file system; a pod that goes gives back more than that
/// (inodes with the bytes, logs with the layers), but it may not have been measured how much.
Help help(const EvictionCause& cause, Signal signal, FilesystemLayout layout) {
  if (std::holds_alternative<Displacement>(cause)) return is_memory(signal) ? Help::by_the_amount : Help::none;
  const auto* evicted_for = std::get_if<Signal>(&cause);
  if (evicted_for == nullptr) return is_disk(signal) ? Help::by_anything : Help::none;
  if (*evicted_for == signal || (is_memory(*evicted_for) && is_memory(signal))) return Help::by_the_amount;
  if (!is_disk(*evicted_for) || !is_disk(signal)) return Help::none;
  const bool same =
      resource_of(*evicted_for) == resource_of(signal) && parts_on(*evicted_for, layout) == parts_on(signal, layout);
  return same ? Help::by_the_amount : Help::by_anything;
}

/// Both memory signals are of the same bytes.
Signal measured_as(Signal signal) { return is_memory(signal) ? Signal::MemoryAvailable : signal; }

/// How much comes back of a signal; absent: nobody knows. What a pod was not chosen for counts by what was measured of
/// it, unless it has time to stop.
std::optional<std::int64_t> coming(const InFlight::Entry& entry, Signal signal, FilesystemLayout layout) {
  const auto helps = help(entry.cause, signal, layout);
  if (helps == Help::by_the_amount) return entry.known ? std::optional{entry.remaining} : std::nullopt;
  const bool has_time = entry.held || entry.grace_period > Duration::zero();
  const auto measured = entry.also.find(measured_as(signal));
  if (!has_time && measured != entry.also.end()) return measured->second;
  return helps == Help::none ? std::optional<std::int64_t>{0} : std::nullopt;
}

void note(InFlight::Entry& entry, Signal signal, std::int64_t amount, bool killed) {
  if (help(entry.cause, signal, {}) == Help::by_the_amount) {
    entry.remaining = amount;
    entry.known = true;
  } else if (killed) {
    entry.also[signal] = amount;
  }
}

/// Whether it comes in time for this threshold.
bool is_coming(const InFlight::Entry& entry, const Threshold& threshold) {
  const bool too_late = threshold.is_hard() && entry.grace_period > Duration::zero();
  return entry.state == InFlight::State::releasing && !too_late;
}

}  // namespace

const InFlight::Entry* InFlight::find(std::string_view uid) const {
  const auto found = std::ranges::find(entries_.rbegin(), entries_.rend(), uid, &Entry::uid);
  return found == entries_.rend() ? nullptr : &*found;
}

std::vector<InFlight::Entry> InFlight::to_save() const {
  auto entries = entries_;
  std::erase_if(entries, &Entry::only_reported);
  return entries;
}

/// What is only reported takes nothing from what was begun with the same pod before. Of a pod that is held the memory
/// comes back whatever it is hurried for.
void InFlight::add(const Eviction& evict, bool only_reported) {
  if (!counts_) return;
  auto also = evict.also_released;
  for (const auto& entry : entries_)
    if (entry.uid == evict.pod->uid && entry.held && !only_reported)
      also.emplace(Signal::MemoryAvailable, entry.remaining);
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.uid == evict.pod->uid && (!only_reported || entry.only_reported);
  });
  const bool known = evict.ranking.empty() || std::ranges::any_of(evict.ranking, [&](const RankedPod& ranked) {
                       return ranked.pod == evict.pod && ranked.has_stats;
                     });
  entries_.push_back({.uid = evict.pod->uid,
                      .cause = evict.cause,
                      .grace_period = evict.grace_period,
                      .remaining = evict.expected_release,
                      .known = known,
                      .also = std::move(also),
                      .only_reported = only_reported});
}

/// Of one that is dead nothing takes time any more but what all others take as well.
void InFlight::update(std::span<const Releasing> releasing) {
  for (const auto& measured : releasing) {
    const auto entry = std::ranges::find(entries_, measured.uid, &Entry::uid);
    if (entry == entries_.end()) continue;
    if (measured.killed) entry->grace_period = Duration::zero();
    note(*entry, Signal::MemoryAvailable, measured.bytes, measured.killed);
    if (!measured.processes) continue;
    for (const auto signal : all_signals())
      if (rank_by(signal) == RankBy::Processes) note(*entry, signal, *measured.processes, measured.killed);
  }
}

/// By the first measurement: a walk of what is being removed finds less than comes back.
void InFlight::measured(Signal disk, const Observation& node, const RankedPod& pod) {
  if (!pod.has_stats) return;
  for (auto& entry : entries_) {
    if (entry.uid != pod.pod->uid || help(entry.cause, disk, {}) != Help::none) continue;
    entry.also.emplace(disk, pod.usage);
    if (pod.usage > (entry.disk ? entry.disk->amount : 0)) entry.disk = {disk, pod.usage, node.available};
  }
}

std::optional<DiskRelease> InFlight::disk_release(std::string_view uid) const {
  const auto* entry = find(uid);
  return entry == nullptr ? std::nullopt : entry->disk;
}

void InFlight::hold(const PodHeld& held) {
  const auto entry = std::ranges::find(entries_, held.uid, &Entry::uid);
  if (entry != entries_.end()) entry->held = held.held && entry->state == State::releasing;
}

void InFlight::end(const CleanupEnded& ended) {
  for (auto& entry : entries_) {
    if (entry.uid != ended.uid || entry.only_reported != ended.only_reported) continue;
    entry.state = ended.released ? State::released : State::stuck;
    entry.lives = !ended.killed;
    entry.held = false;
    entry.named_since.reset();
  }
}

void InFlight::change(const ActingChanged& change) {
  acts_ = change.acts;
  if (acts_) std::erase_if(entries_, &Entry::only_reported);
}

void InFlight::returned(std::string_view uid) {
  for (auto& entry : entries_) entry.lives = entry.lives || (entry.state == State::stuck && entry.uid == uid);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.state == State::released && entry.uid == uid; });
}

void InFlight::retain(const PodList& pods, Instant now) {
  std::erase_if(entries_, [&](Entry& entry) {
    if (entry.state == State::releasing) return false;
    if (std::ranges::none_of(pods, [&](const PodPtr& pod) { return pod->uid == entry.uid; })) return true;
    if (entry.state == State::stuck) return false;
    if (!entry.named_since) entry.named_since = now;
    return now - *entry.named_since >= oldest_list;
  });
}

bool InFlight::leaves_short(const ActingThreshold& acting, const Observation& observation,
                            FilesystemLayout layout) const {
  const auto& threshold = acting.threshold;
  const auto enforce = acting.unresolved ? Enforce::min_reclaim : Enforce::value_only;
  auto available = observation.available;
  for (const auto& entry : entries_) {
    if (!is_coming(entry, threshold)) continue;
    const auto amount = coming(entry, threshold.signal, layout);
    if (!amount) return false;
    available = saturating_add(available, *amount);
  }
  return required(threshold, observation.capacity, enforce) > available;
}

bool InFlight::brings(std::int64_t amount, const Threshold& threshold, FilesystemLayout layout) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return is_coming(entry, threshold) && coming(entry, threshold.signal, layout).value_or(amount) >= amount;
  });
}

bool InFlight::may_choose(const Pod& pod) const {
  const auto* entry = find(pod.uid);
  return entry == nullptr || (entry->state == State::stuck && entry->lives);
}

bool InFlight::may_choose(const Pod& pod, const Threshold& threshold) const {
  const auto* entry = find(pod.uid);
  return entry == nullptr || entry->state == State::stuck || may_hurry(pod, threshold);
}

bool InFlight::may_hurry(const Pod& pod, const Threshold& threshold) const {
  const auto* entry = find(pod.uid);
  if (entry == nullptr) return false;
  const bool takes_more = entry->grace_period > Duration::zero() || (entry->held && !is_memory(threshold.signal));
  return entry->state == State::releasing && takes_more && threshold.is_hard();
}

bool InFlight::is_stuck(const Pod& pod) const {
  const auto* entry = find(pod.uid);
  return entry != nullptr && entry->state == State::stuck;
}

}  // namespace evictd::core
