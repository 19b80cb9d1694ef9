#include "agent/agent.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "agent/listing_first.hpp"
#include "async/spawn.hpp"
#include "async/turns.hpp"
#include "core/eviction_order.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"
#include "os/crash_point.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;  // clang 16 has to be told

/// Whether the kernel told of memory, and nothing else did. What else may run short has sources of its own.
bool is_about_memory(const wake::Wake& wake) {
  return std::ranges::all_of(wake.reasons, [](const auto& reason) {
    return reason.source == core::WakeSource::Memcg || reason.source == core::WakeSource::Tripwire;
  });
}

}  // namespace

Agent::Agent(asio::any_io_executor reactor, Clock& clock, Decider& decider, Parts parts)
    : reactor_{std::move(reactor)}, clock_{clock}, decider_{decider}, parts_{parts} {}

asio::awaitable<void> Agent::run() {
  parts_.evictions.go_on();
  parts_.alarms.report_to(parts_.recorder);
  parts_.alarms.notify({core::WakeSource::Start, "the first pass", clock_.now()});
  while (!stopping_) {
    const auto wake = co_await parts_.alarms.next();
    pass(wake);
  }
  co_await parts_.evictions.finished_within(5s);
}

void Agent::stop() {
  stopping_ = true;
  parts_.alarms.notify({core::WakeSource::Stop, "", clock_.now()});
}

void Agent::pass(const wake::Wake& wake) {
  if (stopping_) return;
  async::Turns::doing("a pass");
  os::crash_point("pass");
  parts_.reports.pass_began();
  core::Turn turn{wake};
  // First: what a victim gives back before the node is read counts twice then, until its end begins the next pass. The
  // other way about it would count nowhere, and somebody else would go for it.
  const auto releasing = parts_.evictions.releasing();
  auto reading = is_about_memory(wake) ? parts_.observer.read_memory(clock_.now()) : parts_.observer.read(clock_.now());
  if (!reading) return;
  reading_ = *std::move(reading);
  parts_.reports.observed(reading_, clock_.now());
  turn.reach(core::Stage::Observed, clock_.now());
  parts_.pods.look_at_unlisted();
  if (const auto layout = parts_.observer.layout(); layout && layout != layout_) {
    layout_ = layout;
    decider_.tell(core::LayoutDetected{*layout}, turn);
  }
  drive(decider_.synchronizer().begin(reading_.observations, releasing), turn);
  // Who is under way may be what it takes, and is soon killed.
  const bool nobody_goes = decider_.synchronizer().nobody_goes() && parts_.evictions.under_way() == 0;
  parts_.alarms.arm(levels_, reading_,
                    {.releasing = parts_.evictions.lifts_fence(releasing), .nobody_goes = nobody_goes}, clock_.now());
  parts_.reports.pass_ended({.observations = reading_.observations,
                             .conditions = decider_.synchronizer().conditions(),
                             .evictions = parts_.evictions.count(),
                             .under_way = parts_.evictions.under_way()},
                            clock_.now());
  parts_.alarms.passed(wake);
  warn_of_unknown_layout();
  if (is_by_the_clock(wake) && parts_.evictions.under_way() == 0) parts_.pods.read_again();
}

/// Why the layout is not known whoever could not find it out has said; but not what comes of it.
void Agent::warn_of_unknown_layout() {
  const auto& policy = decider_.synchronizer();
  const bool ignores = !policy.knows_layout() && policy.conditions().contains(core::NodeCondition::DiskPressure);
  if (ignores && !ignores_disks_)
    os::log_warning(
        "a disk is short, and nothing is done about it: it is not known yet whether images have a disk of their own");
  ignores_disks_ = ignores;
}

void Agent::change_policy(core::EvictionPolicy policy, std::optional<std::size_t> evictions_within_a_minute) {
  const auto now = clock_.now();
  core::Turn turn{{.time = now, .reasons = {{core::WakeSource::Thresholds, "they changed", now}}}};
  decider_.tell(core::PolicyChanged{std::move(policy), evictions_within_a_minute}, turn);
  pass(turn.wake);
}

/// Does what the pass asks for until it is over, or until a disk has to be waited for. That a threshold is met is told
/// whatever comes of it, once, and when there is nothing to be done at once any more: a kill comes first. (kubelet:
/// synchronize, which tells it before it looks for a pod)
void Agent::drive(core::Pass pass, core::Turn turn, core::Answer answer) {
  const bool told = pass.chosen().has_value();
  auto action = pass.resume(answer, clock_.now());
  while (action && !core::takes_time(*action)) {
    answer = perform(*action, turn);
    action = pass.resume(answer, clock_.now());
  }
  if (!told && pass.chosen() && parts_.evictions.acts()) parts_.reports.threshold_met(pass.chosen()->threshold);
  if (action) answer_later(std::move(pass), *action, std::move(turn));
}

core::Answer Agent::perform(const core::Action& action, core::Turn& turn) {
  core::Answer answer;
  std::visit(overloaded{
                 [&](const core::ReadPodUsage& request) {
                   using enum core::Measure;
                   const auto& pods = *request.pods;
                   if (request.measure == Memory) answer = answer_from_cgroups(request, turn);
                   if (request.measure == Processes) answer = core::PodsMeasured{parts_.usage.processes(pods)};
                   if (request.measure == LocalStorageLimits)
                     answer = core::PodsMeasured{parts_.usage.known_disk(pods)};
                 },
                 [](const core::ReclaimNode&) {},  // answer_later() does
                 [&](const core::Eviction& eviction) { parts_.evictions.begin(eviction, turn); },
                 [&](const core::NoVictim& none) { parts_.recorder.no_victim(none, turn); },
                 [&](const core::RateLimited& limited) { parts_.recorder.rate_limited(limited, turn); },
                 [&](const core::Recovered& recovered) { parts_.recorder.recovered(recovered, turn); },
                 [&](const core::ReportCrossing& crossing) {
                   parts_.alarms.crossed(turn.wake);
                   parts_.recorder.crossed(crossing, turn);
                 },
                 [&](const core::ReportConditions& report) {
                   parts_.recorder.conditions(report, turn);
                   parts_.reports.conditions_changed(report.conditions, clock_.now());
                 },
                 [&](const core::WakeAt& wake_at) { parts_.alarms.wake_at(wake_at.time); },
                 [&](const core::ArmLevels& arm) { levels_ = arm.levels; },
             },
             action);
  return answer;
}

/// Newer passes are driven meanwhile.
void Agent::answer_later(core::Pass pass, const core::Action& question, core::Turn turn) {
  if (const auto* reclaim = std::get_if<core::ReclaimNode>(&question))
    async::spawn(reactor_, this->reclaim(std::move(pass), *reclaim, std::move(turn)), "reclaiming on the node");
  else if (const auto* request = std::get_if<core::ReadPodUsage>(&question))
    async::spawn(reactor_, answer_from_disk(std::move(pass), *request, std::move(turn)), "measuring disks");
}

/// What is still short once the pods are read is what a pod is evicted for.
core::Answer Agent::answer_from_cgroups(const core::ReadPodUsage& request, core::Turn& turn) {
  core::PodsMeasured measured{parts_.usage.memory(request.pods, request.eligibilities)};
  turn.reach(core::Stage::Measured, clock_.now());
  measured.fresh = parts_.observer.with_memory_now(reading_.observations, clock_.now());
  parts_.reports.observed(*measured.fresh, clock_.now());
  if (waits_for_list(*request.pods, measured)) return {};
  return measured;
}

/// A pass that would have to wait is given no answer: the next one asks anew.
bool Agent::waits_for_list(const core::PodList& pods, const core::PodsMeasured& measured) {
  if (!parts_.pods.has_strays() && !parts_.pods.listing_first().is_waiting()) return false;
  const auto& memory = (*measured.fresh)[core::Signal::MemoryAvailable];
  const auto ranking =
      decider_.synchronizer().ranking(core::Signal::MemoryAvailable, pods, measured.usage, clock_.now());
  const auto victim = std::ranges::find_if(ranking, core::may_go, &core::PlacedPod::ranked);
  const auto answer = parts_.pods.listing_first().ask({.stray = parts_.pods.largest_stray(),
                                                       .victim = victim == ranking.end() ? 0 : victim->ranked.usage,
                                                       .available = memory ? memory->available : 0},
                                                      clock_.now());
  if (answer == ListingFirst::Answer::list) parts_.pods.list_for_pass();
  return answer != ListingFirst::Answer::go_on;
}

/// Walking directories takes its time: what the node says afterwards decides whether anybody has to go.
asio::awaitable<void> Agent::answer_from_disk(core::Pass pass, core::ReadPodUsage request, core::Turn turn) {
  co_await parts_.usage.measure_disk(request.pods, Usage::Layers::walked);
  turn.reach(core::Stage::Measured, clock_.now());
  core::PodsMeasured measured{parts_.usage.known_disk(*request.pods)};
  measured.out_of_reach = parts_.usage.out_of_reach(*request.pods);
  if (const auto reading = co_await parts_.observer.read_with_disks()) measured.fresh = reading->observations;
  drive(std::move(pass), std::move(turn), std::move(measured));
}

asio::awaitable<void> Agent::reclaim(core::Pass pass, core::ReclaimNode action, core::Turn turn) {
  const auto before = reading_.observations;
  evict::ReclaimResult result;
  if (parts_.evictions.acts()) result = co_await parts_.reclaimer.run(action.containers, action.images);
  for (const auto& error : result.errors) os::log_warning("node reclaim: {}", error.message);
  const auto reading = co_await parts_.observer.read_with_disks();
  const auto after = reading ? reading->observations : before;
  turn.reach(core::Stage::Reclaimed, clock_.now());
  parts_.recorder.reclaimed(action, result, before, after, turn);
  drive(std::move(pass), std::move(turn), core::NodeReclaimed{after});
}

}  // namespace evictd::agent
