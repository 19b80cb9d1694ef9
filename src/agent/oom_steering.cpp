#include "agent/oom_steering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "async/turns.hpp"
#include "core/eviction_order.hpp"
#include "core/oom_order.hpp"
#include "core/signal.hpp"
#include "os/log.hpp"

namespace evictd::agent {

OomSteering::OomSteering(const boost::asio::any_io_executor& reactor, Parts parts)
    : parts_{std::move(parts)}, timer_{reactor}, raised_{parts_.scores->adopt()} {}

OomSteering::~OomSteering() {
  parts_.worker.reset();
  if (const auto outcome = parts_.scores->end(); !outcome.error.empty())
    os::log_warning("oom_score_adj of pods' processes: {}", outcome.error);
}

void OomSteering::approaches() {
  near_ = parts_.acts();
  timer_.cancel();
  if (!near_) return restore();
  const auto now = parts_.clock.now();
  if (busy_ || (looked_ != core::Instant::min() && now - looked_ < between_looks)) return;
  async::Turns::doing("steering the kernel's OOM killer");
  looked_ = now;
  auto work = plan();
  if (work.pods.empty() && !raised_) return;
  busy_ = raised_ = true;
  const auto outcome = std::make_shared<evict::OomOutcome>();
  parts_.worker->run([scores = parts_.scores, work = std::move(work), outcome] { *outcome = scores->follow(work); },
                     [this, outcome] { done(*outcome, true); });
}

void OomSteering::recedes() {
  if (!std::exchange(near_, false)) return;
  timer_.expires_after(parts_.lingers);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error && !near_) restore();
  });
}

void OomSteering::restore() {
  if (!raised_ || busy_) return;  // done() comes here again
  busy_ = true;
  const auto outcome = std::make_shared<evict::OomOutcome>();
  parts_.worker->run([scores = parts_.scores, outcome] { *outcome = scores->restore(); },
                     [this, outcome] {
                       raised_ = !outcome->error.empty();
                       done(*outcome, false);
                     });
}

void OomSteering::done(const evict::OomOutcome& outcome, bool raised) {
  busy_ = false;
  written_ += outcome.changed;
  if (!outcome.error.empty() && outcome.error != refusal_)
    os::log_warning("steering the kernel's OOM killer: {} processes are left as they are: {}", outcome.refused,
                    outcome.error);
  if (raised) refusal_ = outcome.error;
  // The distance has grown meanwhile, and the time to linger may be over.
  if (raised && !near_ && timer_.expiry() <= boost::asio::steady_timer::clock_type::now()) restore();
}

/// The likeliest that may go and may be raised; whoever stands behind them has its score as it is.
evict::OomPlan OomSteering::plan() {
  const auto& pods = parts_.policy.pods();
  if (parts_.prepares) parts_.usage.prepare(pods);
  const auto ranking = parts_.policy.ranking(core::Signal::MemoryAvailable, *pods, parts_.usage.memory_as_listed(pods),
                                             parts_.clock.now());
  const auto first = std::ranges::find_if(ranking, [](const auto& placed) { return core::may_go(placed.ranked); });
  likeliest_ = first == ranking.end() ? std::string{} : first->ranked.pod->uid;
  // Of one that no list names yet the request is inferred from the very scores that are raised here.
  const auto cgroup = [this](const core::Pod& pod) {
    const auto runs = parts_.pods.find(pod.uid);
    return runs && !runs->sandbox_id.empty() ? runs->cgroup : std::string{};
  };
  const auto is_reachable = [&](const core::Pod& pod) {
    const auto path = cgroup(pod);
    return !path.empty() && path.find('\n') == std::string::npos;
  };
  const auto order = core::oom_order(ranking, evict::OomScores::most_pods, parts_.capacity, is_reachable);
  evict::OomPlan plan;
  plan.behind = order.behind;
  for (const auto place : order.raised) {
    const auto& pod = *ranking[place].ranked.pod;
    plan.pods.push_back({.cgroup = cgroup(pod), .most = core::most_raised(pod)});
  }
  return plan;
}

std::vector<wake::SourceStatus> OomSteering::status() const {
  wake::SourceStatus status{.name = "oom-steering", .state = "waiting: no memory threshold is near"};
  if (raised_) status.state = "armed";
  if (!refusal_.empty()) status.state = fmt::format("off: in part or whole: {}", refusal_);
  status.detail = fmt::format("oom_score_adj written {} times", written_);
  return {status};
}

}  // namespace evictd::agent
