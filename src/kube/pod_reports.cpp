#include "kube/pod_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "host/log.hpp"
#include "kube/message.hpp"
#include "kube/wall_time.hpp"

namespace evictd::kube {
namespace {

using host::LogLevel;

constexpr std::string_view strategic_merge_patch = "application/strategic-merge-patch+json";
constexpr std::string_view plain_json = "application/json";

/// How long a report that the server fails at (500, 503) lets others go first: 1 s, doubled each time, at most 1 min.
core::Duration stand_back(int failures) {
  return std::min<core::Duration>(std::chrono::seconds{1} * (std::int64_t{1} << std::min(failures, 6)),
                                  std::chrono::minutes{1});
}

}  // namespace

std::string_view PodReports::what(Step step) {
  switch (step) {
    case Step::Status: return "patch pods/status";
    case Step::Deletion: return "delete pods";
    default: return "create events";
  }
}

bool PodReports::evicted(Eviction eviction, core::Instant now) {
  if (options_.report == ReportMode::None || !can_be_api_pod(eviction)) return false;
  if (!remember(eviction.uid)) return false;
  auto pod = std::make_shared<Case>();
  pod->look_first = !eviction.static_hash.empty() && !eviction.api_uid;
  pod->api_uid = eviction.api_uid.value_or(eviction.uid);
  pod->eviction = std::move(eviction);
  add({.step = Step::Status, .pod = pod, .since = now});
  if (options_.report == ReportMode::Delete) add({.step = Step::Deletion, .pod = pod, .since = now});
  if (pod->eviction.has_event) add({.step = Step::PodEvent, .pod = pod, .since = now});
  return true;
}

void PodReports::threshold_met(core::Resource resource, core::Instant now, WallTime time) {
  if (options_.report == ReportMode::None) return;
  constexpr std::chrono::minutes quiet{1};
  auto& recent = recent_[resource];
  auto met = recent.suppressed.value_or(ThresholdMet{.resource = resource, .first = time, .last = time, .count = 0});
  met.last = time;
  ++met.count;
  if (recent.last && now - *recent.last < quiet) {
    recent.suppressed = met;
    return;
  }
  recent = {.last = now, .suppressed = {}};
  add({.step = Step::NodeEvent, .met = met, .since = now});
}

/// The uids of the last so many: a pod that is killed a second time, because somebody started it again, was reported.
bool PodReports::remember(const std::string& uid) {
  if (!known_.insert(uid).second) return false;
  known_order_.push_back(uid);
  if (known_order_.size() > options_.remembered) {
    known_.erase(known_order_.front());
    known_order_.pop_front();
  }
  return true;
}

void PodReports::add(Entry entry) {
  if (entries_.size() >= options_.capacity && !make_room(entry.step)) {
    drop(entry, "too many reports wait");
    return;
  }
  entry.number = ++last_number_;
  entries_.push_back(std::move(entry));
}

/// Events are news, a status is what controllers act on: the oldest Event goes. Where nothing but statuses wait, a new
/// one of those finds no place either.
bool PodReports::make_room(Step step) {
  if (!overflow_told_)
    tell_(LogLevel::Warning,
          fmt::format("{} reports wait for the API server: the oldest events are dropped", entries_.size()));
  overflow_told_ = true;
  const bool is_event = step == Step::PodEvent || step == Step::NodeEvent;
  const auto oldest = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return (entry.step == Step::PodEvent || entry.step == Step::NodeEvent) && entry.number != in_flight_;
  });
  if (oldest == entries_.end()) {
    if (!is_event)
      tell_(LogLevel::Error,
            fmt::format("{} evictions wait for the API server: the newest is not reported", entries_.size()));
    return false;
  }
  entries_.erase(oldest);
  ++counts_.dropped;
  return true;
}

template <class Visit>
void PodReports::visit_free(Visit visit) const {
  std::set<const Case*> held;
  for (const auto& entry : entries_) {
    if (entry.pod != nullptr && held.contains(entry.pod.get())) continue;
    if (!visit(entry)) return;
    if (entry.pod != nullptr && !entry.forbidden) held.insert(entry.pod.get());
  }
}

std::optional<Request> PodReports::next(core::Instant now) {
  const Entry* found = nullptr;
  visit_free([&](const Entry& entry) {
    if (entry.not_before <= now) found = &entry;
    return found == nullptr;
  });
  if (found == nullptr) return std::nullopt;
  in_flight_ = found->number;
  looking_ = looks_first(*found);
  return request_for(*found);
}

/// An Event is about a pod that was, whoever has its name now.
bool PodReports::looks_first(const Entry& entry) const {
  return entry.pod != nullptr && entry.pod->look_first && entry.step != Step::PodEvent;
}

Request PodReports::request_for(const Entry& entry) const {
  if (entry.step == Step::NodeEvent)
    return {"POST", events_target("default"), std::string(plain_json), threshold_event(entry.met, options_.node)};
  const auto& [eviction, uid, look_first, another] = *entry.pod;
  if (looks_first(entry)) return {"GET", pod_target(eviction)};
  switch (entry.step) {
    case Step::Status:
      return {"PATCH", pod_target(eviction) + "/status", std::string(strategic_merge_patch),
              eviction_status_patch(eviction, uid)};
    case Step::Deletion: return {"DELETE", pod_target(eviction), std::string(plain_json), delete_options(uid)};
    default:
      return {"POST", events_target(eviction.name_space), std::string(plain_json),
              eviction_event(eviction, uid, options_.node)};
  }
}

void PodReports::answered(const Judgement& judgement, const std::string& body, core::Instant now) {
  const auto found = std::ranges::find(entries_, in_flight_, &Entry::number);
  in_flight_ = 0;
  if (found == entries_.end()) return;
  if (looking_) return looked(*found, judgement, body, now);
  switch (judgement.verdict) {
    case Verdict::Done:
    case Verdict::Exists: forbidden_told_.erase(std::string(what(found->step))); return finish(*found);
    // Of a pod that is gone there is nothing more to say; an Event whose namespace is gone has no place to be in.
    case Verdict::NotFound: ++counts_.gone; return remove(found->number);
    case Verdict::AnotherPod: return another_pod(*found);
    case Verdict::Forbidden: return forbid(*found, what(found->step), judgement, now);
    case Verdict::Conflict:
      // Either two wrote at once, or the uid is another: the pod itself says which.
      if (found->pod != nullptr && found->step != Step::PodEvent) found->pod->look_first = true;
      found->not_before = now + stand_back(found->failures++);
      return;
    default: return drop(*found, judgement.message);
  }
}

/// Which pod has the name?
void PodReports::looked(Entry& entry, const Judgement& judgement, const std::string& body, core::Instant now) {
  auto& pod = *entry.pod;
  if (judgement.verdict == Verdict::NotFound) {
    ++counts_.gone;
    return remove(entry.number);
  }
  if (judgement.verdict == Verdict::Forbidden) return forbid(entry, "get pods", judgement, now);
  if (judgement.verdict != Verdict::Done) return drop(entry, judgement.message);
  const auto identity = parse_pod_identity(body);
  if (!identity) return drop(entry, identity.error().message);
  const auto& eviction = pod.eviction;
  const bool mirrors = !eviction.static_hash.empty() && identity->mirror_of == eviction.static_hash;
  if (identity->uid != eviction.uid && identity->uid != eviction.api_uid && !mirrors) return another_pod(entry);
  pod.api_uid = identity->uid;
  pod.look_first = false;
}

void PodReports::postponed(bool at_fault, core::Instant now) {
  const auto found = std::ranges::find(entries_, in_flight_, &Entry::number);
  in_flight_ = 0;
  if (at_fault && found != entries_.end()) found->not_before = now + stand_back(found->failures++);
}

void PodReports::finish(const Entry& entry) {
  switch (entry.step) {
    case Step::Status: ++counts_.statuses; break;
    case Step::Deletion: ++counts_.deletions; break;
    default: ++counts_.events;
  }
  remove(entry.number);
}

void PodReports::remove(std::uint64_t number) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.number == number; });
  // Told anew once it had emptied: not for every report beside a full queue.
  if (entries_.size() <= options_.capacity / 2) overflow_told_ = false;
}

void PodReports::drop(const Entry& entry, const std::string& why) {
  ++counts_.dropped;
  // Each lost status is told; of Events that find no place it was told once that they go.
  if (entry.number != 0) {
    const auto about = entry.pod == nullptr
                           ? options_.node
                           : fmt::format("{}/{}", entry.pod->eviction.name_space, entry.pod->eviction.name);
    tell_(LogLevel::Warning, fmt::format("{}: cannot {}: {}", about, what(entry.step), why));
  }
  remove(entry.number);
}

/// The evicted pod's object is gone, and its name is taken: nothing of it may be written there.
void PodReports::another_pod(const Entry& entry) {
  const auto pod = entry.pod;
  if (!pod->another_pod)
    tell_(LogLevel::Info, fmt::format("{}/{}: another pod has the name now; the eviction of {} is not reported",
                                      pod->eviction.name_space, pod->eviction.name, pod->eviction.uid));
  pod->another_pod = true;
  counts_.dropped +=
      std::erase_if(entries_, [&](const Entry& other) { return other.pod == pod && other.step != Step::PodEvent; });
}

void PodReports::forbid(Entry& entry, std::string_view what, const Judgement& judgement, core::Instant now) {
  entry.forbidden = true;
  entry.not_before = now + options_.forbidden_pause(entry.failures++);
  if (!forbidden_told_.emplace(what).second) return;
  tell_(LogLevel::Warning, fmt::format("the API server forbids evictd to {}, which needs a role that allows it; asked "
                                       "again at the latest every {}: {}",
                                       what, core::to_string(options_.forbidden_retry), judgement.message));
}

std::optional<core::Instant> PodReports::due() const {
  std::optional<core::Instant> earliest;
  visit_free([&](const Entry& entry) {
    if (!earliest || entry.not_before < *earliest) earliest = entry.not_before;
    return true;
  });
  return earliest;
}

std::optional<core::Instant> PodReports::oldest() const {
  if (entries_.empty()) return std::nullopt;
  return entries_.front().since;
}

}  // namespace evictd::kube
