#include "state/state_writer.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <state.pb.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>
#include <variant>

#include "core/in_flight.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"
#include "core/signal.hpp"
#include "core/static_pod.hpp"
#include "core/threshold.hpp"
#include "core/wake.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::state {
namespace {

using KeptFlight = v1::Synchronizer::InFlight;

v1::Threshold keep(const core::Threshold& threshold) {
  v1::Threshold kept;
  kept.set_signal(std::string(core::name(threshold.signal)));
  if (const auto* quantity = std::get_if<core::Quantity>(&threshold.value.value))
    kept.set_quantity(quantity->to_string());
  else
    kept.set_fraction(std::get<core::Percentage>(threshold.value.value).fraction);
  kept.set_grace_ns(threshold.grace.count());
  return kept;
}

KeptFlight::State keep(core::InFlight::State state) {
  switch (state) {
    case core::InFlight::State::releasing: break;
    case core::InFlight::State::released: return KeptFlight::RELEASED;
    case core::InFlight::State::stuck: return KeptFlight::STUCK;
  }
  return KeptFlight::RELEASING;
}

KeptFlight keep(const core::InFlight::Entry& entry) {
  KeptFlight kept;
  kept.set_uid(entry.uid);
  kept.set_cause(std::string(core::name(entry.cause)));
  kept.set_grace_period_ns(entry.grace_period.count());
  kept.set_remaining(entry.remaining);
  kept.set_known(entry.known);
  kept.set_state(keep(entry.state));
  return kept;
}

void keep(const core::BackOff::State& back_off, auto& kept) {
  for (const auto& [controller, eviction] : back_off) {
    auto& message = kept[controller];
    message.set_until_ns(state::keep(eviction.until));
    message.set_resource(std::string(std::ranges::find(rank_by_names, eviction.by, &RankByName::first)->second));
    message.set_usage(eviction.usage);
  }
}

void keep_entries(const core::ThresholdOverlay::BySignal& entries, auto& kept) {
  for (const auto& [signal, value] : entries) {
    auto& entry = *kept.Add();
    entry.set_signal(signal);
    if (value) entry.set_value(*value);
  }
}

/// Up to `most` bytes of the text, and no part of a character at its end.
std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto continues = [&] { return (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80; };
  while (most > 0 && continues()) --most;
  return std::string(text.substr(0, most));
}

/// "" where it is longer than any that there really is.
std::string identity(const std::string& id, std::size_t longest) { return id.size() <= longest ? id : std::string(); }

// Bounds of what is kept of an eviction. Names are those of Kubernetes, which checks them; the rest is generous.
constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_cgroup = 512;
constexpr std::size_t longest_reason = 256;
constexpr std::size_t longest_annotation = 1024;
constexpr std::size_t most_reasons = 8;
constexpr std::size_t most_annotations = 8;

constexpr std::size_t longest_message(Detail detail) {
  return detail == Detail::Full ? 4096 : detail == Detail::Brief ? 1024 : 256;
}
/// A pod with more than these is ended by its sandbox's end.
constexpr std::size_t most_containers(Detail detail) {
  return detail == Detail::Full ? 32 : detail == Detail::Brief ? 8 : 2;
}

/// What is_critical() and eviction_report() look at.
constexpr std::array<std::string_view, 3> needed_annotations{core::config_source, core::config_hash,
                                                             core::config_mirror};

void keep(const core::Turn& turn, Detail detail, v1::Eviction& kept) {
  kept.set_woken_ns(state::keep(turn.wake.time));
  if (detail == Detail::Least) return;
  for (const auto& reason : turn.wake.reasons | std::views::take(most_reasons)) {
    auto& message = *kept.add_reasons();
    message.set_source(std::string(core::name(reason.source)));
    if (detail == Detail::Full) message.set_detail(shortened(reason.detail, longest_reason));
    message.set_time_ns(state::keep(reason.time));
  }
  for (const auto stage : core::stages_by_name())
    if (const auto time = turn.stages[stage])
      (*kept.mutable_stages_ns())[std::string(core::name(stage))] = time->count();
}

void keep(const core::Acted& acted, v1::Eviction::Acted& kept) {
  *kept.mutable_threshold() = keep(acted.threshold);
  kept.set_available(acted.observation.available);
  kept.set_capacity(acted.observation.capacity);
  kept.set_time_ns(acted.observation.time ? state::keep(*acted.observation.time) : 0);
}

void keep(const core::DiskRelease& release, v1::Eviction::DiskRelease& kept) {
  kept.set_signal(std::string(core::name(release.signal)));
  kept.set_amount(release.amount);
  kept.set_available(release.available);
}

void keep(const pods::RuntimePod& pod, Detail detail, v1::Eviction& kept) {
  kept.set_sandbox_id(identity(pod.sandbox_id, longest_id));
  kept.set_cgroup(identity(pod.cgroup, longest_cgroup));
  for (const auto& container : pod.containers | std::views::take(most_containers(detail))) {
    auto& message = *kept.add_containers();
    message.set_id(identity(container.id, longest_id));
    if (detail == Detail::Full) message.set_name(shortened(container.name, longest_name));
    message.set_cgroup(identity(container.cgroup, longest_cgroup));
    message.set_exited(container.state == pods::ContainerState::Exited);
  }
}

/// An eviction that would take more than this is written more briefly than the others.
constexpr std::size_t most_of_one = std::size_t{16} * 1024;

/// Maps have no order of their own; with one, the same state is the same text.
std::string serialized(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::io::StringOutputStream stream(&text);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return text;
}

/// Whether the text of one is that of the other. All members are named, but for the ranking and what else is released:
/// a new one has to be compared here as well where it is kept (keep() above).
bool is_same(const evict::EvictionRecord& left, const evict::EvictionRecord& right) {
  const auto& [pod, cause, grace_period, message, acted, ranking, expected_release, also_released, disk_release] =
      static_cast<const core::Eviction&>(left);
  return pod == right.pod && cause == right.cause && grace_period == right.grace_period && message == right.message &&
         acted == right.acted && expected_release == right.expected_release && disk_release == right.disk_release &&
         static_cast<const evict::Reached&>(left) == static_cast<const evict::Reached&>(right) && left.id == right.id &&
         left.turn.wake.time == right.turn.wake.time && left.turn.stages == right.turn.stages &&
         left.runtime == right.runtime;
}

/// The state with this one eviction in it and nothing else: such texts one after the other are the state with all.
std::string text_of_one(const evict::EvictionRecord& record, std::optional<core::Instant> until, Detail detail) {
  v1::AgentState state;
  if (until) {
    auto& evicted = *state.add_evicted();
    *evicted.mutable_eviction() = state::keep(record, detail);
    evicted.mutable_eviction()->clear_containers();
    evicted.mutable_eviction()->clear_reasons();
    evicted.set_until_ns(state::keep(*until));
  } else {
    *state.add_evictions() = state::keep(record, detail);
  }
  return serialized(state);
}

}  // namespace

v1::Synchronizer keep(const core::Synchronizer::State& from) {
  v1::Synchronizer kept;
  for (const auto& [threshold, since] : from.pressure.met) {
    auto& met = *kept.add_met();
    *met.mutable_threshold() = keep(threshold);
    met.set_since_ns(keep(since));
  }
  for (const auto& [condition, time] : from.pressure.last_observed)
    (*kept.mutable_conditions_last_observed_ns())[std::string(core::name(condition))] = keep(time);
  for (const auto& threshold : from.pressure.acting) *kept.add_acting() = keep(threshold);
  for (const auto& entry : from.in_flight) *kept.add_in_flight() = keep(entry);
  keep(from.back_off, *kept.mutable_back_off());
  if (const auto& cap = from.rate_limit.cap) {
    kept.mutable_cap()->set_left(cap->left);
    kept.mutable_cap()->set_until_ns(keep(cap->until));
  }
  for (const auto time : from.rate_limit.recent) kept.add_recent_evictions_ns(keep(time));
  kept.set_dedicated_imagefs(from.layout.dedicated_imagefs);
  kept.set_split_imagefs(from.layout.split);
  kept.set_layout_known(from.layout_known);
  kept.set_containerfs_derived(from.containerfs_derived);
  return kept;
}

v1::EventMark keep(const EventMark& mark) {
  v1::EventMark kept;
  kept.set_generation(mark.generation);
  kept.set_last(mark.last);
  kept.set_reserved(mark.reserved);
  kept.set_end(mark.end);
  return kept;
}

v1::Overlay keep(const core::ThresholdOverlay& overlay) {
  v1::Overlay kept;
  keep_entries(overlay.hard, *kept.mutable_hard());
  keep_entries(overlay.soft, *kept.mutable_soft());
  keep_entries(overlay.soft_grace_period, *kept.mutable_soft_grace_period());
  keep_entries(overlay.minimum_reclaim, *kept.mutable_minimum_reclaim());
  return kept;
}

v1::Eviction keep(const evict::EvictionRecord& record, Detail detail) {
  v1::Eviction kept;
  kept.set_id(record.id);
  kept.set_pod_namespace(shortened(record.pod->name_space, longest_name));
  kept.set_pod_name(shortened(record.pod->name, longest_name));
  kept.set_pod_uid(identity(record.pod->uid, longest_id));
  for (const auto key : needed_annotations)
    if (const auto found = record.pod->annotations.find(key); found != record.pod->annotations.end())
      (*kept.mutable_pod_annotations())[found->first] = shortened(found->second, longest_name);
  kept.set_cause(std::string(core::name(record.cause)));
  keep(record.turn, detail, kept);
  if (record.acted) keep(*record.acted, *kept.mutable_acted());
  kept.set_expected_release(record.expected_release);
  if (record.disk_release) keep(*record.disk_release, *kept.mutable_disk_release());
  kept.set_grace_period_ns(record.grace_period.count());
  kept.set_begun_ns(keep(record.begun));
  kept.set_killed(record.killed);
  kept.set_released(record.released);
  kept.set_gone(record.gone);
  kept.set_held_bytes(record.held);
  kept.set_given_time(static_cast<std::int32_t>(record.given_time));
  kept.set_message(shortened(record.message.text, longest_message(detail)));
  if (detail == Detail::Full)
    for (const auto& [key, value] : record.message.annotations | std::views::take(most_annotations))
      (*kept.mutable_message_annotations())[shortened(key, longest_name)] = shortened(value, longest_annotation);
  if (record.runtime != nullptr) keep(*record.runtime, detail, kept);
  return kept;
}

StateWriter::Text& StateWriter::text_of(const SavedEviction& eviction) {
  auto& text = texts_[{eviction.record->id, eviction.until.has_value()}];
  if (text.as_written.pod == nullptr || text.until != eviction.until || !is_same(text.as_written, *eviction.record)) {
    text.as_written = *eviction.record;
    text.as_written.ranking.clear();
    text.until = eviction.until;
    for (auto& written : text.at_detail) written.clear();
  }
  text.used = true;
  return text;
}

const std::string& StateWriter::at(Text& text, Detail detail) const {
  auto& written = text.at_detail[static_cast<std::size_t>(detail)];
  if (!written.empty()) return written;
  for (auto less = detail;; less = static_cast<Detail>(static_cast<int>(less) + 1)) {
    written = text_of_one(text.as_written, text.until, less);
    if (written.size() <= most_of_one || less == Detail::Least) return written;
  }
}

std::size_t StateWriter::size(const std::vector<Text*>& texts, Detail detail) const {
  return std::accumulate(texts.begin(), texts.end(), std::size_t{0},
                         [&](std::size_t sum, Text* text) { return sum + at(*text, detail).size(); });
}

/// In the order in which things go.
std::string StateWriter::write(v1::AgentState& state, const std::vector<SavedEviction>& evictions) {
  for (auto& [key, text] : texts_) text.used = false;
  std::vector<Text*> over;
  std::vector<Text*> under_way;
  for (const auto& eviction : evictions) (eviction.until ? over : under_way).push_back(&text_of(eviction));
  std::erase_if(texts_, [](const auto& entry) { return !entry.second.used; });

  auto rest = serialized(state);
  auto detail = Detail::Full;
  const auto is_too_much = [&] { return rest.size() + size(over, detail) + size(under_way, detail) > most_; };
  shed_ = is_too_much();
  if (shed_) over.clear();
  if (is_too_much()) detail = Detail::Brief;
  if (is_too_much()) {
    state.mutable_synchronizer()->clear_back_off();
    rest = serialized(state);
  }
  if (is_too_much()) detail = Detail::Least;
  if (is_too_much()) std::ranges::stable_sort(under_way, {}, [](const Text* text) { return text->as_written.killed; });
  for (auto all = rest.size() + size(under_way, detail); all > most_ && !under_way.empty(); under_way.pop_back())
    all -= at(*under_way.back(), detail).size();

  for (auto* text : over) rest += at(*text, detail);
  for (auto* text : under_way) rest += at(*text, detail);
  return rest;
}

}  // namespace evictd::state
