#include "kube/report_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "kube/judgement.hpp"
#include "kube/message.hpp"
#include "kube/pod_objects.hpp"
#include "kube/wall_time.hpp"
#include "os/log.hpp"

namespace evictd::kube {

using os::LogLevel;

ReportQueue::ReportQueue(ReportOptions options, Random random, Tell tell)
    : options_{std::move(options)},
      tell_{tell},
      node_{options_, tell, random},
      pods_{options_, tell},
      retry_{options_.retry, std::move(random)} {}

bool ReportQueue::evicted(Eviction eviction, core::Instant now) { return pods_.evicted(std::move(eviction), now); }

void ReportQueue::threshold_met(std::string_view resource, core::Instant now, WallTime time) {
  pods_.threshold_met(resource, now, time);
}

void ReportQueue::node_conditions(const core::NodeConditions& conditions, core::Instant now, WallTime time) {
  node_.set(conditions, now, time);
}

void ReportQueue::node_shutdown(const NodeShutdown& shutdown, core::Instant now, WallTime time) {
  node_.set_shutdown(shutdown.pending, time);
  pods_.node_shutdown(shutdown, now, time);
}

std::optional<Request> ReportQueue::next(core::Instant now, WallTime time) {
  if (in_flight_ != Sender::Nobody || now < paused_until_) return std::nullopt;
  using enum Sender;
  for (const auto sender : pods_first_ ? std::array{Pods, Node} : std::array{Node, Pods})
    if (auto call = sender == Node ? node_.next(now, time) : pods_.next(now)) {
      in_flight_ = sender;
      return call;
    }
  return std::nullopt;
}

void ReportQueue::answered(const Result<Response>& answer, core::Instant now) {
  if (!answer) return failed(answer.error().message, {}, false, now);
  const auto judgement = judge(*answer);
  switch (judgement.verdict) {
    // The client reads its token anew for each try; here it is only waited for.
    case Verdict::Unauthorized:
      return failed("the API server does not accept evictd's credentials: " + judgement.message, {}, false, now);
    // Too many requests are no request's fault; an error of the server's or of a proxy's may be this one request's.
    case Verdict::Busy: {
      const bool at_fault = answer->status != 408 && answer->status != 429;
      return failed(judgement.message, answer->retry_after, at_fault, now);
    }
    default: break;
  }
  heard(now);
  pods_first_ = false;
  const bool refused = judgement.verdict == Verdict::Forbidden || judgement.verdict == Verdict::Rejected;
  if (refused) {
    last_failure_ = now;
    last_error_ = judgement.message;
  } else {
    last_success_ = now;
  }
  if (std::exchange(in_flight_, Sender::Nobody) == Sender::Node)
    node_.answered(judgement, answer->body, now);
  else
    pods_.answered(judgement, answer->body, now);
}

void ReportQueue::failed(const std::string& why, std::optional<core::Duration> retry_after, bool at_fault,
                         core::Instant now) {
  last_failure_ = now;
  last_error_ = why;
  paused_until_ = now + retry_.failed(now, retry_after);
  const auto sender = std::exchange(in_flight_, Sender::Nobody);
  pods_first_ = at_fault && sender == Sender::Node;
  if (sender == Sender::Node) {
    node_.postponed(at_fault, now);
  } else {
    pods_.postponed(at_fault, now);
    if (at_fault) node_.forget_failures();
  }
  if (!away_) tell_(LogLevel::Warning, fmt::format("reports to the API server wait: {}", why));
  away_ = true;
}

/// The server is there and listens, whatever it thinks of this report.
void ReportQueue::heard(core::Instant now) {
  retry_.succeeded(now);
  if (away_) tell_(LogLevel::Info, fmt::format("the API server takes reports again; {} wait", pods_.waiting()));
  away_ = false;
}

std::optional<core::Instant> ReportQueue::due() const {
  if (in_flight_ != Sender::Nobody) return std::nullopt;
  auto earliest = node_.due();
  if (const auto pods = pods_.due(); pods && (!earliest || *pods < *earliest)) earliest = pods;
  if (!earliest) return std::nullopt;
  return std::max(*earliest, paused_until_);
}

ReportStatus ReportQueue::status() const {
  return {.waiting = pods_.waiting() + (node_.waits() ? 1 : 0),
          .oldest = pods_.oldest(),
          .last_success = last_success_,
          .last_failure = last_failure_,
          .last_error = last_error_,
          .written = pods_.counts(),
          .node_updates = node_.updates()};
}

}  // namespace evictd::kube
