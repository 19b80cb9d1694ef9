#include "agent/trimmer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "async/spawn.hpp"
#include "async/turns.hpp"
#include "core/eligibility.hpp"
#include "core/signal.hpp"
#include "core/wake.hpp"
#include "os/log.hpp"

namespace evictd::agent {
namespace {

constexpr std::size_t most_told = 16;  // lines, which name pods' cgroups: there are ever new ones

/// Also where that cannot be seen.
bool is_short(const core::Threshold& threshold, const core::Observations& observations) {
  return !observations[threshold.signal] || core::is_met(threshold, observations, core::Enforce::value_only);
}

}  // namespace

/// What the worker's thread and the reactor share.
struct Trimmer::Run {
  core::Threshold threshold;
  core::Observation before;
  std::size_t programs_told = 0;
  evict::TrimPlan plan;
  std::atomic<bool> stopped = false;
  evict::TrimResult result;  // the thread's, until it is done
  bool awaits_counts = false;
};

bool Trimmer::may_begin() const {
  return !stopped_ && run_ == nullptr && parts_.clock.now() >= next_ && parts_.node.acts() && !parts_.node.evicts();
}

void Trimmer::passed(const core::Observations& observations) {
  const auto trim = core::trim_after_pass(parts_.policy, observations, parts_.clock.now());
  if (trim.pods_go) return stop_run();
  if (trim.goal && may_begin()) begin(*trim.goal);
}

void Trimmer::approaches() {
  const auto now = parts_.clock.now();
  if (!may_begin() || now < glanced_ + between_glances) return;
  glanced_ = now;
  if (const auto goal = core::trim_near_hard(parts_.policy.thresholds(), parts_.node.look())) begin(*goal);
}

Trimmer::~Trimmer() {
  if (run_ != nullptr) run_->stopped = true;
}

void Trimmer::stop() {
  stopped_ = true;
  stop_run();
}

void Trimmer::stop_run() {
  if (run_ == nullptr) return;
  run_->stopped = true;
  if (run_->awaits_counts) tell();
}

void Trimmer::begin(const core::TrimGoal& goal) {
  async::Turns::doing("choosing whose file cache goes");
  run_ = std::make_shared<Run>();
  run_->threshold = goal.threshold;
  run_->before = goal.observation;
  run_->programs_told = parts_.node.tell_programs();
  run_->plan = plan(goal);
  if (run_->plan.pods.empty() && run_->programs_told == 0) {
    run_.reset();
    next_ = parts_.clock.now() + between_looks;
    return;
  }
  if (run_->plan.pods.empty()) return ended(run_);
  const auto trim = [run = run_, limits = parts_.limits, tools = parts_.tools] {
    run->result = evict::trim_cache(run->plan, run->stopped, limits, *tools);
  };
  parts_.worker.run(trim, [this, run = run_] { ended(run); });
}

/// Of a pod without a cgroup to itself it cannot be said what is its own.
evict::TrimPlan Trimmer::plan(const core::TrimGoal& goal) const {
  evict::TrimPlan plan{.version = parts_.hierarchy.version(), .proc = parts_.proc, .wanted = goal.wanted};
  const auto signal = goal.threshold.signal;
  const auto& pods = parts_.policy.pods();
  std::vector<core::Eligibility> eligibilities;
  eligibilities.reserve(pods->size());
  for (const auto& pod : *pods) eligibilities.push_back(parts_.policy.eligibility(signal, *pod));
  const auto usage = parts_.usage.memory(pods, eligibilities);
  for (const auto& ranked : core::trimmed_pods(parts_.policy, signal, usage, parts_.clock.now())) {
    if (plan.pods.size() == most_pods) break;
    const auto running = parts_.pods.find(ranked.pod->uid);
    if (running == nullptr || running->cgroup.empty()) continue;
    auto cgroup = parts_.hierarchy.memory(running->cgroup);
    if (cgroup) plan.pods.push_back({.pod = ranked.pod, .cgroup = *std::move(cgroup), .request = ranked.request});
  }
  return plan;
}

/// A pass begins: what recovered is to be seen at once, so that its grace period is over.
void Trimmer::ended(const std::shared_ptr<Run>& run) {
  const auto now = parts_.clock.now();
  using enum evict::TrimEnd;
  const auto& result = run->result;
  const bool may_go_on = result.bytes > 0 && (result.end == Enough || result.end == Time);
  next_ = now + (may_go_on ? between_trims : after_nothing);
  for (const auto& error : result.errors)
    if (told_.size() < most_told && told_.insert(error.message).second)
      os::log_warning("eviction.trim: {}", error.message);
  if (stopped_ || (result.bytes == 0 && run->programs_told == 0)) return run_.reset();
  parts_.wakes.notify({core::WakeSource::Trimmed, "what was tried before a pod goes is over", now});
  if (result.end != Enough || run->stopped || !is_short(run->threshold, parts_.node.look())) return tell();
  run->awaits_counts = true;
  async::spawn(parts_.reactor, tell_later(run), "waiting for the node's counts after a trim");
}

boost::asio::awaitable<void> Trimmer::tell_later(std::shared_ptr<Run> run) {
  co_await parts_.clock.sleep(counts_lag);
  if (run_ == run) tell();
}

void Trimmer::tell() {
  const auto run = std::exchange(run_, nullptr);
  const auto observations = parts_.node.look();
  parts_.log.trimmed({.threshold = run->threshold,
                      .before = run->before,
                      .after = observations[run->threshold.signal],
                      .still_short = is_short(run->threshold, observations),
                      .pods_go = parts_.node.acts() && ((run->stopped && !stopped_) || parts_.node.evicts()),
                      .programs_told = run->programs_told,
                      .result = std::move(run->result)});
}

}  // namespace evictd::agent
