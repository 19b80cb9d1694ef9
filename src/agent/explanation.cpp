#include "agent/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "agent/describe.hpp"
#include "agent/pod_ranking.hpp"
#include "core/eviction_reason.hpp"
#include "core/quantity.hpp"
#include "core/ranked_pod.hpp"
#include "core/signal.hpp"

namespace evictd::agent {
namespace {

/// So many processes are named in a line for people.
constexpr int processes_named = 3;

std::string quantity(std::int64_t bytes) { return core::Quantity::bytes(bytes).to_string(); }
std::int32_t priority_of(const core::RankedPod& ranked) { return ranked.pod->priority.value_or(0); }

v1::MemoryStall describe_stall(const node::MemoryStall& stall) {
  v1::MemoryStall message;
  message.set_some_avg10(stall.some_10);
  message.set_some_avg60(stall.some_60);
  message.set_full_avg10(stall.full_10);
  message.set_full_avg60(stall.full_60);
  return message;
}

void describe_samples(const std::vector<MemorySample>& samples, core::Instant killed,
                      google::protobuf::RepeatedPtrField<v1::MemorySample>& messages) {
  for (const auto& sample : samples) {
    auto& message = *messages.Add();
    *message.mutable_before_kill() = to_duration(killed - sample.time);
    message.set_bytes(sample.bytes);
  }
}

v1::PodSnapshot describe_snapshot(const Evidence& evidence) {
  v1::PodSnapshot message;
  describe_samples(evidence.found.growth, evidence.killed, *message.mutable_pod_usage());
  describe_samples(evidence.node_available, evidence.killed, *message.mutable_node_available());
  if (evidence.found.snapshot == nullptr) return message;
  const auto& snapshot = *evidence.found.snapshot;
  *message.mutable_taken_before_kill() = to_duration(evidence.killed - snapshot.time);
  message.set_usage(snapshot.usage);
  for (const auto& process : snapshot.processes) {
    auto& described = *message.add_processes();
    described.set_command(process.command);
    described.set_rss(process.resident);
    described.set_anon(process.anonymous);
    described.set_shmem(process.shared);
  }
  message.set_processes_read(static_cast<std::uint32_t>(snapshot.processes_read));
  message.set_more_processes(!snapshot.all_read);
  for (const auto& row : snapshot.rows) {
    auto& described = *message.add_memory();
    described.set_name(std::string(row.name));
    described.set_bytes(row.bytes);
  }
  if (snapshot.staying) message.set_staying(*snapshot.staying);
  if (snapshot.node_stall) *message.mutable_node_stall() = describe_stall(*snapshot.node_stall);
  if (snapshot.pod_stall) *message.mutable_pod_stall() = describe_stall(*snapshot.pod_stall);
  return message;
}

std::string rule_in_words(core::RankingRule rule, const core::RankedPod& first, const core::RankedPod& next) {
  const auto over = first.usage - first.request;
  const auto over_next = next.usage - next.request;
  switch (rule) {
    case core::RankingRule::NotByNumbers: return "by its numbers it goes first, but not before all others did";
    case core::RankingRule::NoStats: return "its memory could not be measured, so it goes first";
    case core::RankingRule::Exceeds: return "it used more than it asked for, and the next one did not";
    case core::RankingRule::Priority:
      return fmt::format("its priority is lower: {}, not {}", priority_of(first), priority_of(next));
    case core::RankingRule::None: return "nothing tells the two apart";
    case core::RankingRule::FurtherOver:
      return fmt::format("it was further over its request: by {}, not {}{}", human_bytes(over),
                         next.at_most ? "more than " : "", human_bytes(std::max<std::int64_t>(0, over_next)));
    case core::RankingRule::NearerToIt:
      return fmt::format("it was nearer to its request: {} below it, not {}", human_bytes(-over),
                         human_bytes(-over_next));
  }
  return "";
}

void add_request(const core::EvictionReason& reason, v1::EvictionReason& why) {
  const auto* next = reason.next;
  if (next == nullptr) return why.add_saved_by("no request: no other pod could have gone in its place");
  const auto name = next->pod->key();
  if (!reason.request)
    return why.add_saved_by(fmt::format("no request: {} would not have gone before it with any", name));
  if (!reason.next_is_enough)
    return why.add_saved_by(
        fmt::format("no request: with {} {} would have gone first, but it held {} and {} were missing",
                    quantity(*reason.request), name, human_bytes(next->usage), human_bytes(reason.reclaimed)));
  why.set_saving_request(*reason.request);
  why.add_saved_by(fmt::format("a memory request of at least {}: {} would have gone in its place{}",
                               quantity(*reason.request), name,
                               next->at_most ? ", if it held what its bound says" : ""));
}

void add_limit(const core::EvictionReason& reason, v1::EvictionReason& why) {
  if (!reason.limit) return why.add_saved_by("no limit: the node would have been short without it, too");
  why.set_saving_limit(*reason.limit);
  why.add_saved_by(
      fmt::format("a memory limit of at most {}: the kernel would have held it there, at its own cost, and "
                  "the node would not have been short",
                  quantity(*reason.limit)));
}

/// Bytes a second over the last ten seconds; 0 where nothing was taken.
double taken_a_second(const std::vector<MemorySample>& available) {
  if (available.size() < 2) return 0;
  const auto& last = available.back();
  const auto first = std::ranges::find_if(
      available, [&](const MemorySample& sample) { return last.time - sample.time <= std::chrono::seconds(10); });
  const std::chrono::duration<double> time = last.time - first->time;
  return time.count() > 0 ? static_cast<double>(first->bytes - last.bytes) / time.count() : 0;
}

void add_threshold(const core::EvictionReason& reason, const core::Acted& acted,
                   const std::vector<MemorySample>& available, v1::EvictionReason& why) {
  if (!reason.threshold) return why.add_saved_by("no threshold: nothing was available any more");
  why.set_saving_threshold(*reason.threshold);
  auto line = fmt::format("a threshold of at most {} on {}: it would not have been met yet",
                          quantity(*reason.threshold), core::name(acted.threshold.signal));
  const auto rate = taken_a_second(available);
  if (rate > 0)
    line += fmt::format("; at {} a second nothing would have been left {:.1f} s later",
                        human_bytes(static_cast<std::int64_t>(rate)),
                        static_cast<double>(acted.observation.available) / rate);
  why.add_saved_by(std::move(line));
}

v1::EvictionReason describe_reason(const evict::EvictionRecord& record, const Evidence& evidence) {
  v1::EvictionReason why;
  *why.mutable_short_since() = wall_time(evidence.short_since.value_or(record.turn.wake.time));
  if (!record.acted) return why;
  const auto& [threshold, observation] = *record.acted;
  *why.mutable_threshold() = describe_threshold(threshold, observation.capacity);
  *why.mutable_observation() = describe_observation(observation);
  const auto reason = core::reason_for(record);
  if (!reason) return why;
  const auto signal = threshold.signal;
  why.set_standing(agent::why(signal, {.ranked = *reason->victim}));
  if (const auto* next = reason->next; next != nullptr) {
    *why.mutable_next() = describe_ranked(*next);
    why.mutable_next()->set_why(agent::why(signal, {.ranked = *next}));
    why.set_rule(rule_in_words(reason->rule, *reason->victim, *next));
  }
  add_request(*reason, why);
  add_limit(*reason, why);
  add_threshold(*reason, *record.acted, evidence.node_available, why);
  return why;
}

}  // namespace

bool is_for_memory(const evict::EvictionRecord& record) {
  const auto* signal = std::get_if<core::Signal>(&record.cause);
  return signal != nullptr && core::is_memory(*signal);
}

v1::Explained explain(const evict::EvictionRecord& record, const Evidence& evidence) {
  v1::Explained explained;
  *explained.mutable_snapshot() = describe_snapshot(evidence);
  *explained.mutable_why() = describe_reason(record, evidence);
  return explained;
}

std::string explanation_line(const std::string& pod, const v1::Explained& explained) {
  const auto& snapshot = explained.snapshot();
  auto line = pod + ": ";
  if (snapshot.has_taken_before_kill()) {
    line += "held " + human_bytes(snapshot.usage());
    for (int i = 0; i < std::min(snapshot.processes_size(), processes_named); ++i)
      line += fmt::format("{}{} {}", i == 0 ? " (" : ", ", snapshot.processes(i).command(),
                          human_bytes(snapshot.processes(i).rss()));
    if (snapshot.processes_size() > 0) line += snapshot.processes_size() > processes_named ? ", …)" : ")";
  } else {
    line += "what it held was not seen";
  }
  if (!explained.why().rule().empty())
    line += fmt::format("; before {}/{}: {}", explained.why().next().pod().namespace_(),
                        explained.why().next().pod().name(), explained.why().rule());
  if (explained.why().has_saving_request()) line += "; " + explained.why().saved_by(0);
  return line;
}

}  // namespace evictd::agent
