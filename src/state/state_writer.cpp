#include "state/state_writer.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <state.pb.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace evictd::state {
namespace {

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

/// Whether the text of one is that of the other. All members are named, but for the ranking: a new one has to be
/// compared here as well where it is kept (kept_state.cpp).
bool is_same(const evict::EvictionRecord& left, const evict::EvictionRecord& right) {
  const auto& [pod, cause, grace_period, message, acted, ranking, expected_release] =
      static_cast<const core::Eviction&>(left);
  return pod == right.pod && cause == right.cause && grace_period == right.grace_period && message == right.message &&
         acted == right.acted && expected_release == right.expected_release &&
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
