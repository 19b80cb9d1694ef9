#include "kube/pod_reports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "kube/message.hpp"
#include "kube/wall_time.hpp"
#include "os/log.hpp"

namespace evictd::kube {
namespace {

using os::LogLevel;

constexpr std::string_view strategic_merge_patch = "application/strategic-merge-patch+json";
constexpr std::string_view plain_json = "application/json";

/// A proxy may never let a pod be read. The last of these comes two minutes after the first.
constexpr int most_failed_looks = 7;

}  // namespace

std::string_view PodReports::what(Step step) {
  switch (step) {
    case Step::Status: return "patch pods/status";
    case Step::Deletion: return "delete pods";
    case Step::Check: return "get pods";
    default: return "create events";
  }
}

bool PodReports::evicted(Eviction eviction, core::Instant now) {
  if (options_.report == ReportMode::None || !can_be_api_pod(eviction)) return false;
  const bool has_event = eviction.has_event;
  const auto pod = remember(std::move(eviction));
  std::erase_if(entries_, [&](const Entry& entry) { return entry.pod == pod && entry.step == Step::Check; });
  const auto report = [&](Step step) {
    if (!waits(pod, step)) add({.step = step, .pod = pod, .since = now});
  };
  report(Step::Status);
  if (options_.report == ReportMode::Delete) report(Step::Deletion);
  if (has_event) report(Step::PodEvent);
  return true;
}

/// Controllers would replace a pod that runs, and what is under way is not sent again. By a status that was written its
/// kubelet learns of the eviction, which it has not noticed if it has started the pod again: that goes on, unless it
/// had to wait.
void PodReports::returned(std::string_view uid, core::Instant now) {
  constexpr auto soon = std::chrono::seconds{5};
  const auto known = cases_.find(uid);
  if (known == cases_.end()) return;
  const auto& pod = known->second;
  pod->given_up = pod->given_up || pod->writes == 0;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (entry.pod != pod || entry.step == Step::PodEvent) return false;
    const bool had_to_wait = pod->writes == 0 || entry.failures > 0 || now - entry.not_before > soon;
    if (!had_to_wait && entry.step != Step::Deletion) return false;
    if (entry.step != Step::Check) ++counts_.gone;
    return true;
  });
}

/// What is under way was made of what was known before.
bool PodReports::waits(const CasePtr& pod, Step step) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.pod == pod && entry.step == step && entry.number != in_flight_;
  });
}

void PodReports::threshold_met(std::string_view resource, core::Instant now, WallTime time) {
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
  add({.step = Step::NodeEvent, .news = met, .since = now});
}

void PodReports::node_shutdown(const NodeShutdown& shutdown, core::Instant now, WallTime time) {
  if (options_.report == ReportMode::None || !shutdown.begun) return;
  add({.step = Step::NodeEvent, .news = ToldShutdown{.shutdown = shutdown, .time = time}, .since = now});
}

/// What was found out about the pod's object stays true if it is evicted again.
PodReports::CasePtr PodReports::remember(Eviction eviction) {
  auto& pod = cases_[eviction.uid];
  if (pod == nullptr) {
    pod = std::make_shared<Case>();
    pod->look_first = !eviction.static_hash.empty() && !eviction.api_uid;
    pod->api_uid = eviction.api_uid.value_or(eviction.uid);
    cases_order_.push_back(eviction.uid);
  }
  pod->eviction = std::move(eviction);
  pod->given_up = pod->confirmed = false;
  pod->writes = 0;
  auto result = pod;
  if (cases_order_.size() > options_.remembered) {
    cases_.erase(cases_order_.front());
    cases_order_.pop_front();
  }
  return result;
}

void PodReports::add(Entry entry) {
  if (waiting() >= options_.capacity && !make_room(entry.step)) {
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
          fmt::format("{} reports wait for the API server: the oldest events are dropped", waiting()));
  overflow_told_ = true;
  const bool is_event = step == Step::PodEvent || step == Step::NodeEvent;
  const auto oldest = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return (entry.step == Step::PodEvent || entry.step == Step::NodeEvent) && entry.number != in_flight_;
  });
  if (oldest == entries_.end()) {
    if (!is_event)
      tell_(LogLevel::Error,
            fmt::format("{} evictions wait for the API server: the newest is not reported", waiting()));
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
    const bool in_order = entry.pod != nullptr && entry.step != Step::Check;
    if (in_order && held.contains(entry.pod.get())) continue;
    if (!visit(entry)) return;
    if (in_order && !entry.forbidden) held.insert(entry.pod.get());
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

/// An Event is about a pod that was, whichever pod has its name now.
bool PodReports::looks_first(const Entry& entry) const {
  return entry.pod != nullptr && entry.pod->look_first && entry.step != Step::PodEvent && entry.step != Step::Check;
}

std::string PodReports::node_event_for(const Entry& entry) const {
  if (const auto* told = std::get_if<ToldShutdown>(&entry.news))
    return shutdown_event(told->shutdown, told->time, options_.node);
  return threshold_event(std::get<ThresholdMet>(entry.news), options_.node);
}

Request PodReports::request_for(const Entry& entry) const {
  if (entry.step == Step::NodeEvent)
    return {"POST", events_target("default"), std::string(plain_json), node_event_for(entry)};
  const auto& eviction = entry.pod->eviction;
  const auto& uid = entry.pod->api_uid;
  if (looks_first(entry) || entry.step == Step::Check) return {"GET", pod_target(eviction)};
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
  if (found->step == Step::Check) return checked(*found, judgement, body, now);
  switch (judgement.verdict) {
    case Verdict::Done:
    case Verdict::Exists: forbidden_told_.erase(std::string(what(found->step))); return finish(*found, now);
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
  const auto object = parse_pod_object(body);
  if (!object) return drop(entry, object.error().message);
  const auto& eviction = pod.eviction;
  const bool mirrors = !eviction.static_hash.empty() && object->mirror_of == eviction.static_hash;
  if (object->uid != eviction.uid && object->uid != eviction.api_uid && !mirrors) return another_pod(entry);
  pod.api_uid = object->uid;
  pod.look_first = false;
}

void PodReports::postponed(bool at_fault, core::Instant now) {
  const auto found = std::ranges::find(entries_, in_flight_, &Entry::number);
  in_flight_ = 0;
  if (!at_fault || found == entries_.end()) return;
  found->not_before = now + stand_back(found->failures++);
  if (found->step == Step::Check && found->failures >= most_failed_looks) remove(found->number);
}

void PodReports::finish(const Entry& entry, core::Instant now) {
  const auto [step, pod] = std::pair(entry.step, entry.pod);
  remove(entry.number);
  switch (step) {
    case Step::Status:
      ++counts_.statuses;
      if (pod->writes++ > 0) ++counts_.statuses_again;
      if (options_.report == ReportMode::Status && !pod->confirmed && !waits(pod, Step::Status)) look_later(pod, now);
      break;
    case Step::Deletion: ++counts_.deletions; break;
    default: ++counts_.events;
  }
}

void PodReports::remove(std::uint64_t number) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.number == number; });
  // Told anew once it had emptied: not for every report beside a full queue.
  if (waiting() <= options_.capacity / 2) overflow_told_ = false;
}

void PodReports::drop(const Entry& entry, const std::string& why) {
  ++counts_.dropped;
  if (entry.step == Step::Status) entry.pod->given_up = true;
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
  tell_forbidden(what, judgement);
}

void PodReports::tell_forbidden(std::string_view what, const Judgement& judgement) {
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

std::size_t PodReports::waiting() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const Entry& entry) { return entry.step != Step::Check; }));
}

std::optional<core::Instant> PodReports::oldest() const {
  const auto found = std::ranges::find_if(entries_, [](const Entry& entry) { return entry.step != Step::Check; });
  if (found == entries_.end()) return std::nullopt;
  return found->since;
}

}  // namespace evictd::kube
