#include "kube/node_report.hpp"

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

// What is told once: of the node itself; of a step, its right.
constexpr std::string_view unreadable = "node";
constexpr std::string_view unknown = "unknown";

}  // namespace

std::string_view NodeReport::right_for(Step step) {
  switch (step) {
    case Step::Read: return "get nodes";
    case Step::Conditions: return "patch nodes/status";
    case Step::Taints: break;
  }
  return "patch nodes";
}

void NodeReport::set(const core::NodeConditions& conditions, core::Instant now, WallTime time) {
  if (options_.node_conditions == NodeConditionMode::None) return;
  if (told_once_ && conditions == conditions_) return;
  for (const auto& row : core::node_condition_rows)
    if (!told_once_ || conditions.contains(row.condition) != conditions_.contains(row.condition))
      since_[row.condition] = time;
  if (!told_once_) not_before_ = now + options_.start_delay;
  told_once_ = true;
  conditions_ = conditions;
  ++version_;
  forget_failures();
  conditions_dirty_ = writes_conditions();
  taints_dirty_ = true;
  // Who else writes to the node is not known here, and a taint is changed by what the node says now.
  if (!writes_conditions() && !in_flight_) view_.reset();
}

void NodeReport::set_shutdown(bool pending, WallTime time) {
  if (!writes_conditions() || (shutdown_ && shutdown_->pending == pending)) return;
  shutdown_ = ShutdownState{.pending = pending, .since = time};
  ++version_;
  conditions_dirty_ = true;
  forget_failures();
  // Ready has another owner: what it says now decides.
  if (!in_flight_) view_.reset();
}

bool NodeReport::wants_conditions(core::Instant now) const {
  return conditions_dirty_ && now >= conditions_not_before_;
}
bool NodeReport::wants_taints(core::Instant now) const { return taints_dirty_ && now >= taints_not_before_; }

/// The time has come to say the same again.
void NodeReport::beat(core::Instant now) {
  if (!heartbeat_ || now < *heartbeat_) return;
  heartbeat_.reset();
  conditions_dirty_ = writes_conditions();
  taints_dirty_ = taints_dirty_ || !writes_conditions();
  if (!writes_conditions()) view_.reset();
}

void NodeReport::expect_heartbeat(core::Instant now) {
  heartbeat_.reset();
  if (!writes_conditions() && conditions_.empty()) return;
  const auto share = static_cast<double>(options_.heartbeat.count()) * (0.5 + random_());
  heartbeat_ = now + core::Duration{static_cast<core::Duration::rep>(share)};
}

std::optional<Request> NodeReport::next(core::Instant now, WallTime time) {
  if (!told_once_ || now < not_before_) return std::nullopt;
  beat(now);
  if (!wants_conditions(now) && !wants_taints(now)) return std::nullopt;
  sent_version_ = version_;
  if (!view_) {
    in_flight_ = Step::Read;
    return Request{"GET", node_target(options_.node)};
  }
  const bool taints_go_first = std::exchange(taints_first_, false) && wants_taints(now);
  if (wants_conditions(now) && !taints_go_first) {
    in_flight_ = Step::Conditions;
    return Request{"PATCH", node_target(options_.node) + "/status", "application/strategic-merge-patch+json",
                   conditions_patch(*view_, conditions_, since_, time, shutdown_)};
  }
  if (auto patch = taints_patch(*view_, conditions_)) {
    in_flight_ = Step::Taints;
    return Request{"PATCH", node_target(options_.node), "application/merge-patch+json", *std::move(patch)};
  }
  taints_written(now);
  return std::nullopt;
}

void NodeReport::answered(const Judgement& judgement, const std::string& body, core::Instant now) {
  const auto step = in_flight_.value_or(Step::Read);
  in_flight_.reset();
  switch (judgement.verdict) {
    case Verdict::Done: break;
    case Verdict::Conflict: {
      // Another client wrote to the node: read it again, and soon not at once any more.
      constexpr int patience = 3;
      view_.reset();
      if (++conflicts_ > patience) not_before_ = now + std::chrono::seconds{1};
      return;
    }
    default: return refused(step, judgement, now);
  }
  succeeded(step);
  if (step == Step::Read) return see(body, now);
  conflicts_ = 0;
  ++updates_;
  if (step == Step::Conditions) return conditions_written(body, now);
  see(body, now);
  if (sent_version_ == version_) taints_written(now);
}

void NodeReport::postponed(bool at_fault, core::Instant now) {
  const auto step = in_flight_.value_or(Step::Read);
  in_flight_.reset();
  if (!at_fault) return;
  wait(step, now + stand_back(failures_[step]++));
  taints_first_ = step == Step::Conditions;
}

void NodeReport::forget_failures() {
  for (auto& [step, count] : failures_)
    if (std::exchange(count, 0) > 0) wait(step, {});
}

void NodeReport::see(const std::string& body, core::Instant now) {
  view_.reset();
  auto view = parse_node(body);
  if (view) {
    view_ = *std::move(view);
    forget(unreadable);
    return;
  }
  tell_once(unreadable, view.error().message);
  not_before_ = now + options_.forbidden_retry;
}

/// The answer is the node as it is now: whether the taints are there is known without another look.
void NodeReport::conditions_written(const std::string& body, core::Instant now) {
  see(body, now);
  if (sent_version_ == version_) conditions_dirty_ = false;
  taints_dirty_ = true;
  expect_heartbeat(now);
}

void NodeReport::taints_written(core::Instant now) {
  refusals_[Step::Taints] = failures_[Step::Taints] = 0;
  taints_dirty_ = false;
  if (!writes_conditions()) expect_heartbeat(now);
}

/// Forgets what this disproves, no more: what the other steps are refused for is still so.
void NodeReport::succeeded(Step step) {
  forget(unknown);
  forget(right_for(step));
  refusals_[step] = failures_[step] = 0;
}

/// Not allowed, no such node, or not understood: the other half may still be written, this one is tried again later.
void NodeReport::refused(Step step, const Judgement& judgement, core::Instant now) {
  const auto later = now + options_.forbidden_pause(refusals_[step]++);
  const auto what = right_for(step);
  if (judgement.verdict == Verdict::NotFound) {
    tell_once(unknown, fmt::format("the API server knows no node {} (kubernetes.nodeName); its conditions and taints "
                                   "wait until it does",
                                   options_.node));
    view_.reset();
    not_before_ = now + std::min<core::Duration>(options_.forbidden_retry, std::chrono::minutes{1});
    return;
  }
  if (judgement.verdict == Verdict::Forbidden)
    tell_once(what, fmt::format("the API server forbids evictd to {}, which needs a role that allows it; "
                                "asked again at the latest every {}: {}",
                                what, core::to_string(options_.forbidden_retry), judgement.message));
  else
    tell_once(what, fmt::format("cannot {}: {}", what, judgement.message));
  wait(step, later);
}

void NodeReport::wait(Step step, core::Instant until) {
  switch (step) {
    case Step::Read: not_before_ = until; break;
    case Step::Conditions: conditions_not_before_ = until; break;
    case Step::Taints: taints_not_before_ = until; break;
  }
}

void NodeReport::tell_once(std::string_view what, const std::string& line) {
  if (told_.emplace(what).second) tell_(LogLevel::Warning, line);
}

void NodeReport::forget(std::string_view what) { told_.erase(std::string(what)); }

std::optional<core::Instant> NodeReport::due() const {
  if (!told_once_) return std::nullopt;
  std::optional<core::Instant> earliest = heartbeat_;
  const auto consider = [&](bool wanted, core::Instant time) {
    if (wanted && (!earliest || time < *earliest)) earliest = time;
  };
  consider(conditions_dirty_, conditions_not_before_);
  consider(taints_dirty_, taints_not_before_);
  if (!earliest) return std::nullopt;
  return std::max(*earliest, not_before_);
}

}  // namespace evictd::kube
