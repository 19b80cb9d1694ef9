#include "agent/agent.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "agent/coming_back.hpp"
#include "agent/describe.hpp"
#include "agent/eviction_record.hpp"
#include "async/side_thread.hpp"
#include "async/spawn.hpp"
#include "core/action.hpp"
#include "core/answer.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/eviction_order.hpp"
#include "core/eviction_settings.hpp"
#include "core/observation.hpp"
#include "core/pass.hpp"
#include "core/pod.hpp"
#include "core/signal.hpp"
#include "cri/presence.hpp"
#include "cri/warm_up.hpp"
#include "host/crash_point.hpp"
#include "host/log.hpp"
#include "host/turns.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {
namespace {

core::Instant now() { return std::chrono::steady_clock::now(); }

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;  // clang 16 has to be told

}  // namespace

Agent::Agent(asio::any_io_executor reactor, core::EvictionPolicy policy, AgentOptions options, Parts parts)
    : reactor_{reactor},
      options_{options},
      parts_{parts},
      synchronizer_{std::move(policy), options.right_amount},
      inferred_volumes_{std::make_unique<async::SideThread>(reactor, "volumes"), options.pod_roots},
      refresh_timer_{reactor},
      local_storage_timer_{reactor},
      images_timer_{reactor} {}

asio::awaitable<void> Agent::run() {
  continue_evictions();
  watch_specs();
  async::spawn(reactor_, watch_pods(), "listing the pods");
  async::spawn(reactor_, watch_local_storage(), "local storage limits");
  async::spawn(reactor_, watch_images(), "listing the images");
  parts_.runtime.watch([this](const cri::Presence& presence) {
    if (!presence.present) return host::log_warning("{}; waiting for it", presence.detail);
    runtime_name_ = presence.detail;
    host::log_info("{} answers at {}", presence.detail, parts_.runtime.endpoint());
    async::spawn(reactor_, find_image_filesystem(), "looking for the image filesystem");
    async::spawn(reactor_, cri::warm_up(parts_.runtime), "warming up the runtime");
    pods_changed();
  });
  parts_.wakes.on_degraded(
      [this](const std::string& source, const Error& error) { parts_.recorder.source_degraded(source, error); });
  parts_.wakes.on_recovered(
      [this](const std::string& source, const std::string& what) { parts_.recorder.source_recovered(source, what); });
  watch_disks();
  parts_.wakes.notify({"start", "the first pass", now()});
  while (!stopping_) pass(co_await parts_.wakes.next());
  co_await wait_for_evictions();
}

void Agent::stop() {
  stopping_ = true;
  parts_.catalog.stop();
  refresh_timer_.cancel();
  local_storage_timer_.cancel();
  images_timer_.cancel();
  parts_.wakes.notify({"stop", "", now()});
}

void Agent::pass(const wake::Wake& wake) {
  if (stopping_) return;
  host::Turns::doing("a pass");
  host::crash_point("pass");
  ++passes_;
  Turn turn{wake};
  auto reading = parts_.observer.read(now());
  if (!reading) return;
  reading_ = *std::move(reading);
  memory_history_.observed(reading_, now());
  turn.mark("observed");
  // Behind the node, for it grows with the pods. What is inferred of a pod that is not listed follows from its
  // processes, which come after its cgroup.
  if (!parts_.unlisted.pods().empty() && find_unlisted()) publish_pods();
  if (const auto layout = parts_.observer.layout(); layout != layout_) {
    layout_ = layout;
    tell(core::LayoutDetected{layout}, turn);
  }
  releasing_ = releasing();
  drive(synchronizer_.begin(reading_.observations, releasing_), turn);
  arm();
  fill_rates_.observe(reading_.observations, now());
  report_service_status();
  if (!ready_) parts_.service.ready();
  // What an earlier evictd said of the node may not be true any more.
  if (!ready_ && parts_.cluster != nullptr) parts_.cluster->node_conditions(conditions_);
  ready_ = true;
  changed();
  read_disks(wake);
}

void Agent::change_policy(core::EvictionPolicy policy, std::size_t evictions_within_a_minute) {
  Turn turn{{.time = now(), .reasons = {{"thresholds", "they changed", now()}}}};
  tell(core::PolicyChanged{std::move(policy), evictions_within_a_minute}, turn);
  pass(turn.wake);
}

core::Observations Agent::observe() const {
  const auto reading = parts_.observer.read(now());
  return reading ? reading->observations : reading_.observations;
}

void Agent::tell(const core::Event& event, const Turn&) {
  if (const auto wake_at = synchronizer_.tell(event, now())) parts_.deadline.set(wake_at->time);
}

/// Does what the pass asks for until it is over, or until a disk has to be waited for.
void Agent::drive(core::Pass pass, Turn turn, core::Answer answer) {
  while (const auto action = pass.resume(answer, now())) {
    if (core::takes_time(*action)) return answer_later(std::move(pass), *action, std::move(turn));
    answer = perform(*action, turn);
  }
}

core::Answer Agent::perform(const core::Action& action, Turn& turn) {
  core::Answer answer;
  std::visit(overloaded{
                 [&](const core::ReadPodUsage& request) { answer = this->answer(request, turn); },
                 [](const core::ReclaimNode&) {},  // answer_later() does
                 [&](const core::Evict& evict) { this->evict(evict, turn); },
                 [&](const core::NoVictim& none) { parts_.recorder.no_victim(none, turn); },
                 [&](const core::RateLimited& limited) { parts_.recorder.rate_limited(limited, turn); },
                 [&](const core::Recovered& recovered) { parts_.recorder.recovered(recovered, turn); },
                 [&](const core::ReportCrossing& crossing) { crossed(crossing, turn); },
                 [&](const core::ReportConditions& report) { conditions_changed(report, turn); },
                 [&](const core::WakeAt& wake_at) { parts_.deadline.set(wake_at.time); },
                 [&](const core::ArmLevels& arm) { levels_ = arm.levels; },
             },
             action);
  return answer;
}

/// Newer passes are driven meanwhile.
void Agent::answer_later(core::Pass pass, const core::Action& question, Turn turn) {
  if (const auto* reclaim = std::get_if<core::ReclaimNode>(&question))
    async::spawn(reactor_, this->reclaim(std::move(pass), *reclaim, std::move(turn)), "reclaiming on the node");
  else if (const auto* request = std::get_if<core::ReadPodUsage>(&question))
    async::spawn(reactor_, answer_from_disk(std::move(pass), *request, std::move(turn)), "measuring disks");
}

core::Answer Agent::answer(const core::ReadPodUsage& request, Turn& turn) {
  switch (request.measure) {
    case core::Measure::Memory: return answer_from_cgroups(request, turn);
    case core::Measure::Processes: return core::PodsMeasured{parts_.usage.processes(*request.pods)};
    case core::Measure::LocalStorageLimits: return core::PodsMeasured{parts_.usage.known_disk(*request.pods)};
    case core::Measure::Disk: break;  // answer_later() does
  }
  return {};
}

/// What is still short once the pods are read is what somebody goes for.
core::Answer Agent::answer_from_cgroups(const core::ReadPodUsage& request, Turn& turn) {
  core::PodsMeasured measured{parts_.usage.memory(request.pods, request.standings)};
  turn.mark("measured");
  measured.fresh = parts_.observer.with_memory_now(reading_.observations, now());
  memory_history_.observed(*measured.fresh, now());
  if (waits_for_list(*request.pods, measured)) return {};
  return measured;
}

/// A pass that would have to wait is given no answer: the next one asks anew.
bool Agent::waits_for_list(const core::PodList& pods, const core::PodsMeasured& measured) {
  if (parts_.unlisted.strays().empty() && !listing_first_.is_waiting()) return false;
  const auto& memory = (*measured.fresh)[core::Signal::MemoryAvailable];
  const auto ranking = synchronizer_.ranking(core::Signal::MemoryAvailable, pods, measured.usage, now());
  const auto victim = std::ranges::find_if(ranking, core::may_go, &core::PlacedPod::ranked);
  const auto answer = listing_first_.ask({.stray = largest_stray(),
                                          .victim = victim == ranking.end() ? 0 : victim->ranked.usage,
                                          .available = memory ? memory->available : 0},
                                         now());
  if (answer == ListingFirst::Answer::list) {
    refresh_timer_.cancel();
    auto timer = std::make_shared<asio::steady_timer>(reactor_, ListingFirst::patience);
    timer->async_wait([this, timer](boost::system::error_code) {
      if (listing_first_.is_waiting()) parts_.wakes.notify({"pods", "a list of pods was waited for", now()});
    });
  }
  return answer != ListingFirst::Answer::go_on;
}

/// Walking directories takes its time: what the node says afterwards decides whether anybody has to go.
asio::awaitable<void> Agent::answer_from_disk(core::Pass pass, core::ReadPodUsage request, Turn turn) {
  co_await parts_.usage.measure_disk(request.pods, PodUsageReader::Layers::walked);
  turn.mark("measured");
  core::PodsMeasured measured{parts_.usage.known_disk(*request.pods)};
  measured.out_of_reach = parts_.usage.out_of_reach(*request.pods);
  if (const auto reading = co_await parts_.observer.read_with_disks()) measured.fresh = reading->observations;
  drive(std::move(pass), std::move(turn), std::move(measured));
}

asio::awaitable<void> Agent::reclaim(core::Pass pass, core::ReclaimNode action, Turn turn) {
  tell_threshold_met(action.threshold);
  const auto before = reading_.observations;
  evict::ReclaimResult result;
  if (!options_.dry_run) result = co_await parts_.reclaimer.run(action.containers, action.images);
  for (const auto& error : result.errors) host::log_warning("node reclaim: {}", error.message);
  const auto reading = co_await parts_.observer.read_with_disks();
  const auto after = reading ? reading->observations : before;
  turn.mark("reclaimed");
  parts_.recorder.reclaimed(action, result, before, after, turn);
  drive(std::move(pass), std::move(turn), core::NodeReclaimed{after});
}

void Agent::conditions_changed(const core::ReportConditions& report, const Turn& turn) {
  for (const auto condition : core::all_node_conditions)
    if (report.conditions.contains(condition) != conditions_.contains(condition)) conditions_since_[condition] = now();
  conditions_ = report.conditions;
  parts_.recorder.conditions(report, turn);
  if (parts_.cluster != nullptr) parts_.cluster->node_conditions(conditions_);
}

/// What only the timer saw, every notifier missed.
void Agent::crossed(const core::ReportCrossing& crossing, const Turn& turn) {
  if (std::ranges::all_of(turn.wake.reasons,
                          [](const wake::Reason& reason) { return reason.source == wake::FallbackTimer::name; }))
    parts_.fallback.count_missed();
  parts_.recorder.crossed(crossing, turn);
}

void Agent::arm() {
  arming_.levels.clear();
  for (const auto& level : levels_) {
    const auto& observation = reading_.observations[level.signal];
    if (!observation) continue;
    auto& armed = arming_.levels.emplace_back(level.signal, level.hard, level.available, observation->available);
    const auto* input = level.signal == core::Signal::MemoryAvailable ? &reading_.node_level
                        : level.signal == core::Signal::AllocatableMemoryAvailable && reading_.pods_level
                            ? &*reading_.pods_level
                            : nullptr;
    armed.time = observation->time;
    arming_.time = std::max(arming_.time, observation->time.value_or(now()));
    if (input != nullptr)
      armed.usage = wake::UsageLevel{.bytes = input->level(level.available),
                                     .without_reclaimable = input->level_without_reclaimable(level.available),
                                     .current = input->usage,
                                     .incarnation = input->incarnation};
  }
  arming_.releasing =
      std::ranges::any_of(evictions_, [&](const auto& entry) { return lifts_fence(entry.second, releasing_); });
  for (const auto& source : parts_.sources) source->arm(arming_);
}

void Agent::report_service_status() {
  std::string conditions;
  for (const auto condition : synchronizer_.conditions()) conditions += fmt::format(" {}", core::name(condition));
  const auto& memory = reading_.observations[core::Signal::MemoryAvailable];
  parts_.service.status(fmt::format("{}; {} of memory available; {} evictions, {} under way",
                                    conditions.empty() ? "no pressure" : conditions.substr(1),
                                    human_bytes(memory ? memory->available : 0), evicted_, evictions_.size()));
}

}  // namespace evictd::agent
