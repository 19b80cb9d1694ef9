#include "agent/recorder.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "agent/describe.hpp"
#include "agent/describe_eviction.hpp"
#include "agent/describe_given_time.hpp"
#include "agent/describe_kernel_oom.hpp"
#include "agent/describe_trim.hpp"
#include "agent/eviction_audit.hpp"
#include "agent/explanation.hpp"
#include "core/displacement.hpp"
#include "core/error.hpp"
#include "core/eviction_message.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "events/valid_texts.hpp"
#include "os/log.hpp"

namespace evictd::agent {
namespace {

using os::LogLevel;

/// Of a ranking more than this is not sent: who would be the twentieth to go is no news.
constexpr std::size_t ranking_shown = 16;

/// A line for people has no more of a change than this.
constexpr int changes_shown = 4;

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string names(const core::NodeConditions& conditions) {
  std::vector<std::string> list;
  for (const auto condition : conditions) list.emplace_back(core::name(condition));
  return list.empty() ? "none" : join(list);
}

/// "memory.available: 100Mi -> 500Mi", of two lines that begin alike.
std::string change(const std::string& before, const std::string& after) {
  if (before.empty() || before == after) return after;
  const auto colon = before.find(": ");
  const auto common = colon == std::string::npos ? 0 : colon + 2;
  if (common == 0 || before.compare(0, common, after, 0, common) != 0) return fmt::format("{} -> {}", before, after);
  return fmt::format("{} -> {}", before, after.substr(common));
}

/// How old the numbers were by which the pod was chosen. (kubelet 1.36, eviction_manager.go: EvictionStatsAge)
std::optional<core::Duration> observation_age(const core::Eviction& eviction, const core::Turn& turn) {
  const auto decided = turn.stages[core::Stage::Decided];
  if (!eviction.acted || !eviction.acted->observation.time || !decided) return std::nullopt;
  return std::max(turn.wake.time + *decided - *eviction.acted->observation.time, core::Duration::zero());
}

/// What is done to the pod, for people.
std::string_view verb(const core::EvictionCause& cause) {
  const auto* displacement = std::get_if<core::Displacement>(&cause);
  if (displacement == nullptr) return "evicting";
  return *displacement == core::Displacement::Preemption ? "preempting" : "terminating";
}

/// `candidates`: how many were compared, of which the record's ranking may have the first ones only.
v1::Event describe_intent(const evict::EvictionRecord& record, std::size_t candidates, bool dry_run) {
  auto event = new_event(v1::Event::EVICTION_INTENDED, record);
  auto& detail = *event.mutable_eviction_intended();
  if (record.acted) {
    *detail.mutable_threshold() = describe_threshold(record.acted->threshold, record.acted->observation.capacity);
    *detail.mutable_observation() = describe_observation(record.acted->observation);
  }
  if (const auto age = observation_age(record, record.turn)) *detail.mutable_observation_age() = to_duration(*age);
  detail.set_grace_period_seconds(std::chrono::ceil<std::chrono::seconds>(record.grace_period).count());
  detail.set_reason(std::string(core::reason(record.cause)));
  detail.set_candidates(static_cast<std::int32_t>(candidates));
  for (const auto& ranked : record.ranking) *detail.add_ranking() = describe_ranked(ranked);
  detail.mutable_annotations()->insert(record.message.annotations.begin(), record.message.annotations.end());
  detail.set_dry_run(dry_run);
  event.set_message(fmt::format("{}{} {}: {}", dry_run ? "(dry run) " : "", verb(record.cause), record.pod->key(),
                                record.message.text));
  return event;
}

}  // namespace

void Recorder::crossed(const core::ReportCrossing& action, const core::Turn& turn) {
  told_.clear();  // another shortage
  append(describe_crossing(action.acted, turn), LogLevel::Info);
}

void Recorder::conditions(const core::ReportConditions& action, const core::Turn& turn) {
  auto event = new_event(v1::Event::CONDITION_CHANGED, turn);
  auto& detail = *event.mutable_condition_changed();
  for (const auto condition : action.conditions) detail.add_conditions(std::string(core::name(condition)));
  event.set_message(fmt::format("node conditions: {}", names(action.conditions)));
  append(std::move(event), LogLevel::Info);
}

void Recorder::no_victim(const core::NoVictim& action, const core::Turn& turn) {
  auto event = new_event(v1::Event::EVICTION_FAILED, turn);
  event.set_signal(std::string(core::name(action.acted.threshold.signal)));
  event.mutable_eviction_failed()->set_step("select");
  event.mutable_eviction_failed()->set_error("no pod may be evicted");
  event.set_message(fmt::format("{}: no pod may be evicted ({} looked at, all critical or on their way out)",
                                core::to_string(action.acted.threshold), action.ranking.size()));
  tell_once(std::move(event));
}

/// Every pass would say so again while the shortage lasts, if with another number of pods.
void Recorder::tell_once(v1::Event event) {
  if (told_.insert(event.signal() + ": " + event.eviction_failed().error()).second)
    append(std::move(event), LogLevel::Warning);
}

void Recorder::rate_limited(const core::RateLimited& action, const core::Turn& turn) {
  auto event = new_event(v1::Event::EVICTION_FAILED, turn);
  event.set_signal(std::string(core::name(action.acted.threshold.signal)));
  event.mutable_eviction_failed()->set_step("select");
  const auto* key = action.after_change ? "thresholds.maxEvictionsAfter" : "eviction.maxPerMinute";
  event.mutable_eviction_failed()->set_error(fmt::format("{} is reached", key));
  event.set_message(fmt::format("{}: as many pods were evicted as {} allows; the next may go later",
                                core::to_string(action.acted.threshold), key));
  tell_once(std::move(event));
}

void Recorder::recovered(const core::Recovered& action, const core::Turn& turn) {
  auto event = new_event(v1::Event::RECOVERED, turn);
  const auto& [threshold, observation] = action.acted;
  event.set_signal(std::string(core::name(threshold.signal)));
  *event.mutable_recovered()->mutable_observation() = describe_observation(observation);
  event.set_message(fmt::format("{} was over before a pod was chosen: {} available", core::to_string(threshold),
                                amount(threshold.signal, observation.available)));
  append(std::move(event), LogLevel::Info);
}

void Recorder::source_degraded(const std::string& source, const Error& error) {
  source_state(source, "failed", error.message);
}

void Recorder::source_recovered(const std::string& source, const std::string& what) {
  source_state(source, "recovered", what);
}

void Recorder::source_state(const std::string& source, std::string_view state, const std::string& what) {
  v1::Event event;
  event.set_kind(v1::Event::SOURCE_DEGRADED);
  event.mutable_source_degraded()->set_source(source);
  event.mutable_source_degraded()->set_state(fmt::format("{}: {}", state, what));
  event.set_message(fmt::format("{}: {}", source, what));
  append(std::move(event), LogLevel::Warning);
}

evict::EvictionRecord Recorder::intended(core::Eviction eviction, const core::Turn& turn, bool dry_run) {
  told_.clear();
  const auto candidates = eviction.ranking.size();
  evict::EvictionRecord record{std::move(eviction), {}, 0, turn};
  if (candidates > ranking_shown)
    record.ranking.erase(record.ranking.begin() + static_cast<std::ptrdiff_t>(ranking_shown), record.ranking.end());
  record.id = append(describe_intent(record, candidates, dry_run), LogLevel::Info);
  if (const auto decided = turn.stages[core::Stage::Decided])
    latencies_.record(core::name(record.cause), Phase::Decision, *decided);
  return record;
}

void Recorder::rehearse(const evict::EvictionRecord& record) {
  if (!record.acted) return;
  for (auto event : {describe_crossing(*record.acted, record.turn), describe_intent(record, 1, false)}) {
    events::stamp(event);
    events::make_texts_valid(event);
    static_cast<void>(event.SerializeAsString());
  }
}

void Recorder::config_changed(std::vector<std::string> changes, const std::string& message) {
  v1::Event event;
  event.set_kind(v1::Event::CONFIG_CHANGED);
  const auto level = changes.empty() ? LogLevel::Warning : LogLevel::Info;  // without one, something was refused
  for (auto& change : changes) event.mutable_config_changed()->add_changes(std::move(change));
  event.set_message(message);
  append(std::move(event), level);
}

void Recorder::audit(const v1::Audit& audit) {
  v1::Event event;
  event.set_kind(v1::Event::AUDIT);
  *event.mutable_audit() = audit;
  std::vector<std::string> changes;
  for (int i = 0; i < std::min(audit.after_size(), changes_shown); ++i)
    changes.push_back(change(i < audit.before_size() ? audit.before(i) : "", audit.after(i)));
  if (audit.after_size() > changes_shown) changes.push_back("…");
  event.set_message(fmt::format("{}: {}: {}{}", audit.caller(), audit.call(), audit.outcome(),
                                changes.empty() ? "" : fmt::format(" ({})", join(changes))));
  append(std::move(event), audit.outcome() == "done" ? LogLevel::Info : LogLevel::Warning);
}

void Recorder::kernel_oom(const KernelKill& kill) { append(describe_kernel_oom(kill), LogLevel::Warning); }
void Recorder::trimmed(const TrimReport& report) { append(describe_trim(report), LogLevel::Info); }

void Recorder::admission_rejected(const core::Pod& pod, const admission::Decision& decision) {
  v1::Event event;
  event.set_kind(v1::Event::ADMISSION_REJECTED);
  *event.mutable_pod() = describe_pod(pod);
  event.mutable_admission_rejected()->set_reason(decision.verdict.reason);
  event.mutable_admission_rejected()->set_handler(std::string(decision.handler));
  const bool is_resize = decision.operation == admission::Operation::Resize;
  event.set_message(fmt::format("{} is not {}: {}: {}", pod.key(), is_resize ? "resized" : "admitted",
                                decision.verdict.reason, decision.verdict.message));
  append(std::move(event), LogLevel::Info);
}

void Recorder::reclaimed(const core::ReclaimNode& action, const evict::ReclaimResult& result,
                         const core::Observations& before, const core::Observations& after, const core::Turn& turn) {
  auto event = new_event(v1::Event::NODE_RECLAIMED, turn);
  const auto signal = action.threshold.signal;
  const auto available = [&](const core::Observations& observations) {
    return observations[signal] ? observations[signal]->available : 0;
  };
  event.set_signal(std::string(core::name(signal)));
  auto& detail = *event.mutable_node_reclaimed();
  detail.set_available_before(available(before));
  detail.set_available_after(available(after));
  for (const auto each : core::all_signals()) {
    if (!core::is_disk(each) || !before[each] || !after[each]) continue;
    auto& reclaimed = *detail.add_signals();
    reclaimed.set_signal(std::string(core::name(each)));
    reclaimed.set_available_before(before[each]->available);
    reclaimed.set_available_after(after[each]->available);
  }
  detail.set_images_removed(static_cast<std::int32_t>(result.images_removed));
  detail.set_containers_removed(static_cast<std::int32_t>(result.containers_removed + result.sandboxes_removed));
  event.set_message(fmt::format("removed {} dead containers and {} unused images: {} available before, {} after",
                                detail.containers_removed(), result.images_removed, amount(signal, available(before)),
                                amount(signal, available(after))));
  append(std::move(event), LogLevel::Info);
}

void Recorder::progress(evict::EvictionRecord& record, const evict::Progress& progress) {
  std::visit([&](const auto& known) { on(record, known); }, progress);
}

void Recorder::on(evict::EvictionRecord& record, const evict::ContainersKilled& killed) {
  record.turn.stages.set(core::Stage::Killed, killed.time - record.turn.wake.time);
  measure(record, Phase::FirstKill, killed.time);
  auto event = new_event(v1::Event::CONTAINERS_KILLED, record);
  auto& detail = *event.mutable_containers_killed();
  detail.mutable_containers()->Add(killed.containers.begin(), killed.containers.end());
  detail.set_method(killed.method);
  event.set_message(fmt::format("{}: stopped {} by {}", record.pod->key(), join(killed.containers), killed.method));
  append(std::move(event), LogLevel::Info);
}

void Recorder::explained(evict::EvictionRecord& record, const Evidence& evidence) {
  record.snapshot = evidence.found.snapshot;
  auto event = new_event(v1::Event::EXPLAINED, record);
  *event.mutable_explained() = explain(record, evidence);
  event.set_message(explanation_line(record.pod->key(), event.explained()));
  append(std::move(event), LogLevel::Info);
}

void Recorder::on(evict::EvictionRecord& record, const evict::MemoryReleased& released) {
  if (released.first) {
    record.turn.stages.set(core::Stage::FirstRelease, *released.first - record.turn.wake.time);
    measure(record, Phase::FirstRelease, *released.first);
  }
  record.turn.stages.set(core::Stage::Released, released.time - record.turn.wake.time);
  auto event = new_event(v1::Event::MEMORY_RELEASED, record);
  event.mutable_memory_released()->set_released_bytes(released.bytes);
  event.set_message(fmt::format("{}: {} of memory are back", record.pod->key(), human_bytes(released.bytes)));
  append(std::move(event), LogLevel::Info);
}

void Recorder::on(evict::EvictionRecord& record, const evict::CallFailed& failed) {
  auto event = new_event(v1::Event::EVICTION_FAILED, record);
  event.mutable_eviction_failed()->set_step(failed.call);
  event.mutable_eviction_failed()->set_error(failed.error.message);
  event.set_message(fmt::format("{}: {}: {}", record.pod->key(), failed.call, failed.error.message));
  append(std::move(event), LogLevel::Warning);
}

void Recorder::on(evict::EvictionRecord& record, const evict::CallDelayed& delayed) {
  auto event = new_event(v1::Event::EVICTION_DELAYED, record);
  event.mutable_eviction_delayed()->set_step(delayed.call);
  event.mutable_eviction_delayed()->set_error(delayed.error.message);
  event.set_message(fmt::format("{}: goes on without the runtime's answer: {}: {}", record.pod->key(), delayed.call,
                                delayed.error.message));
  append(std::move(event), LogLevel::Warning);
}

void Recorder::on(evict::EvictionRecord& record, const evict::CleanupEnded& ended) {
  record.turn.stages.set(core::Stage::Cleanup, ended.time - record.turn.wake.time);
  if (!ended.timed_out) measure(record, Phase::Cleanup, ended.time);
  auto event = new_event(v1::Event::CLEANUP_DONE, record);
  auto& detail = *event.mutable_cleanup_done();
  detail.set_timed_out(ended.timed_out);
  *detail.mutable_duration() = to_duration(ended.duration);
  event.set_message(ended.timed_out
                        ? fmt::format("{}: gave up waiting for its cleanup: {}", record.pod->key(), ended.remaining)
                        : fmt::format("{}: cleaned up after {} ms", record.pod->key(),
                                      ended.duration / std::chrono::milliseconds(1)));
  audit_later(record, ended.timed_out ? "timed out: " + ended.remaining : "cleaned up");
  append(std::move(event), ended.timed_out ? LogLevel::Warning : LogLevel::Info);
}

void Recorder::on(evict::EvictionRecord& record, const evict::Braked& braked) {
  if (braked.frozen) return;  // HOOKS_ASKED tells of it
  auto event = new_event(v1::Event::BRAKED, record);
  *event.mutable_braked() = describe_braked(braked);
  event.set_message(fmt::format("{}: {}", record.pod->key(), describe(braked)));
  append(std::move(event), LogLevel::Info);
}

void Recorder::on(evict::EvictionRecord& record, const evict::HooksAsked& asked) {
  auto event = new_event(v1::Event::HOOKS_ASKED, record);
  *event.mutable_hooks_asked() = describe_asked(asked);
  event.set_message(fmt::format("{}: {}", record.pod->key(), describe(asked)));
  append(std::move(event), LogLevel::Info);
}

/// How long a pod takes to end by itself is its own affair: where it was given time nothing but the decision is
/// measured.
void Recorder::measure(const evict::EvictionRecord& record, Phase phase, core::Instant reached) {
  const auto decided = record.turn.stages[core::Stage::Decided];
  const bool given_time = record.grace_period > core::Duration::zero() || record.given_time != evict::GivenTime::none;
  if (given_time || !decided) return;
  latencies_.record(core::name(record.cause), phase, reached - record.turn.wake.time - *decided);
}

void Recorder::failed(const evict::EvictionRecord& record, const Error& error) {
  auto event = new_event(v1::Event::EVICTION_FAILED, record);
  event.mutable_eviction_failed()->set_step("begin");
  event.mutable_eviction_failed()->set_error(error.message);
  event.set_message(fmt::format("{}: {}", record.pod->key(), error.message));
  append(std::move(event), LogLevel::Warning);
  audit_later(record, "failed: " + error.message);
}

std::uint64_t Recorder::append(v1::Event event, LogLevel level) {
  const auto& appended = events_.append(std::move(event));
  const auto sequence = appended.sequence();
  log_later(appended, level);
  return sequence;
}

/// Once it is over, for then all its stages are known. After the current handler, as the log.
void Recorder::audit_later(const evict::EvictionRecord& record, std::string outcome) {
  boost::asio::post(events_.get_executor(), [message = fmt::format("{}: {}", record.pod->key(), record.message.text),
                                             fields = eviction_fields(record, outcome)] {
    os::log_to_journal(LogLevel::Info, message, fields);
  });
}

/// After the current handler: waking the log's thread takes longer than a kill, and can wait until after it.
void Recorder::log_later(const v1::Event& event, LogLevel level) {
  const auto stages = [&] {
    std::string text;
    for (const auto& [stage, time] : event.stages())
      text += fmt::format("{}{}={}us", text.empty() ? "" : " ", stage, time);
    return text;
  };
  boost::asio::post(events_.get_executor(),
                    [level, kind = v1::Event::Kind_Name(event.kind()), message = event.message(),
                     pod = event.has_pod() ? event.pod().namespace_() + "/" + event.pod().name() : "",
                     signal = event.signal(), sequence = event.sequence(), stages = stages()] {
                      os::log(level, message,
                              {{"EVICTD_EVENT", kind},
                               {"EVICTD_SEQUENCE", std::to_string(sequence)},
                               {"EVICTD_POD", pod},
                               {"EVICTD_SIGNAL", signal},
                               {"EVICTD_STAGES", stages}});
                    });
}

}  // namespace evictd::agent
