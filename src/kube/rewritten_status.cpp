// What becomes of a status that was written: PodReports looks at the pod again.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/duration.hpp"
#include "core/printable.hpp"
#include "kube/judgement.hpp"
#include "kube/pod_objects.hpp"
#include "kube/pod_reports.hpp"
#include "os/log.hpp"

namespace evictd::kube {
namespace {

using os::LogLevel;

/// When a pod is read after its status was written. The first: its kubelet has noticed the end by then (0.3 to 1.1 s
/// measured, kubelet 1.36). The second: its status manager's tick of 10 s has passed.
constexpr std::array<core::Duration, 2> looks{std::chrono::seconds{1}, std::chrono::seconds{11}};

/// 0, then 1 s, doubled each time.
core::Duration pause_before_write(int writes) {
  return writes < 2 ? core::Duration::zero() : std::chrono::seconds{std::int64_t{1} << std::min(writes - 2, 6)};
}

}  // namespace

void PodReports::look_later(const CasePtr& pod, core::Instant written) { check(pod, written, written + looks.front()); }

/// `when`: the first look, the others follow at their times after `written`.
void PodReports::check(const CasePtr& pod, core::Instant written, core::Instant when) {
  const auto begin = std::max(when, looks_from_);
  if (begin > written + looks.back()) return;
  entries_.push_back(
      {.number = ++last_number_, .step = Step::Check, .pod = pod, .since = written, .not_before = begin});
}

/// The right is one for all pods: the first look after the pause finds out for the others. Those whose time is over by
/// then end, for what was written over a status minutes ago may be true.
void PodReports::forbid_looks(const Judgement& judgement, core::Instant now) {
  tell_forbidden(what(Step::Check), judgement);
  looks_from_ = now + options_.forbidden_pause(looks_refused_++);
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.step == Step::Check && looks_from_ > entry.since + looks.back();
  });
  for (auto& entry : entries_)
    if (entry.step == Step::Check) entry.not_before = std::max(entry.not_before, looks_from_);
}

/// Does the pod still say what was written?
void PodReports::checked(Entry& entry, const Judgement& judgement, const std::string& body, core::Instant now) {
  const auto& pod = *entry.pod;
  if (judgement.verdict == Verdict::Forbidden) return forbid_looks(judgement, now);
  if (judgement.verdict != Verdict::Done) return remove(entry.number);  // it is gone, or cannot be read
  forbidden_told_.erase(std::string(what(entry.step)));
  looks_refused_ = 0;
  const auto object = parse_pod_object(body);
  if (!object) return drop(entry, object.error().message);
  // What was deleted ends by itself, and another pod of that name is none of evictd's.
  if (object->uid != pod.api_uid || object->deleted) return remove(entry.number);
  if (is_told(pod.eviction, object->phase, object->reason)) return confirmed(entry, now);
  write_again(entry, *object, now);
}

void PodReports::confirmed(Entry& entry, core::Instant now) {
  if (std::exchange(entry.doubted, false)) {  // what was read may be older than the doubt
    entry.not_before = now;
    return;
  }
  const auto next = std::ranges::find_if(looks, [&](core::Duration after) { return entry.since + after > now; });
  if (next == looks.end() || entry.pod->confirmed) return remove(entry.number);
  entry.not_before = entry.since + *next;
}

void PodReports::write_again(const Entry& entry, const PodObject& found, core::Instant now) {
  const auto pod = entry.pod;
  const auto name = fmt::format("{}/{}", pod->eviction.name_space, pod->eviction.name);
  const auto status =
      core::printable(found.reason.empty() ? found.phase : fmt::format("{} ({})", found.phase, found.reason));
  remove(entry.number);
  if (pod->writes >= most_writes) {
    pod->given_up = true;
    ++counts_.dropped;
    tell_(LogLevel::Error,
          fmt::format("{}: its status says {} again, though evictd wrote {} times that the pod was evicted: it is left "
                      "at that; with kubernetes.report: delete the object would be deleted",
                      name, status, pod->writes));
    return;
  }
  tell_(LogLevel::Warning, fmt::format("{}: was evicted, but its status says {}: it is written again", name, status));
  add({.step = Step::Status, .pod = pod, .since = now, .not_before = now + pause_before_write(pod->writes)});
}

bool PodReports::seen(std::string_view uid, std::string_view phase, std::string_view reason, core::Instant now) {
  const auto known = cases_.find(uid);
  if (options_.report != ReportMode::Status || known == cases_.end()) return false;
  const auto& pod = known->second;
  const auto is = [&](Step step) {
    return [&pod, step](const Entry& entry) { return entry.pod == pod && entry.step == step; };
  };
  const auto found = std::ranges::find_if(entries_, is(Step::Check));
  pod->confirmed = is_told(pod->eviction, phase, reason);
  if (pod->confirmed) {
    if (found != entries_.end() && found->number != in_flight_) entries_.erase(found);
    return false;
  }
  // What is about to be written needs no look first.
  if (pod->given_up || pod->another_pod || std::ranges::any_of(entries_, is(Step::Status))) return false;
  if (found == entries_.end())
    check(pod, now, now);
  else if (found->number == in_flight_)
    found->doubted = true;
  else
    found->not_before = std::min(found->not_before, std::max(now, looks_from_));
  return true;
}

}  // namespace evictd::kube
