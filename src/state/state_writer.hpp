#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/signal.hpp"
#include "core/synchronizer.hpp"
#include "core/threshold_overlay.hpp"
#include "evict/eviction_record.hpp"
#include "state/state_file.hpp"

namespace evictd::state::v1 {
class AgentState;
class Eviction;
class EventMark;
class Overlay;
class Synchronizer;
}  // namespace evictd::state::v1

namespace evictd::state {

// What is kept over a restart as messages (proto/evictd/state/v1/state.proto); state/restored_state.hpp reads them.

[[nodiscard]] v1::Synchronizer keep(const core::Synchronizer::State& state);
[[nodiscard]] v1::Overlay keep(const core::ThresholdOverlay& overlay);
[[nodiscard]] v1::EventMark keep(const EventMark& mark);
[[nodiscard]] constexpr std::int64_t keep(core::Instant time) { return time.time_since_epoch().count(); }

/// How the state names what pods are ranked by.
using RankByName = std::pair<core::RankBy, std::string_view>;
inline constexpr std::array<RankByName, 4> rank_by_names{{{core::RankBy::Memory, "memory"},
                                                          {core::RankBy::EphemeralStorage, "ephemeral-storage"},
                                                          {core::RankBy::Inodes, "inodes"},
                                                          {core::RankBy::Processes, "pids"}}};

/// No uid and no id of a container is longer.
inline constexpr std::size_t longest_id = 256;

/// How much of an eviction is kept. What finishing it takes is in all of them.
enum class Detail : std::uint8_t {
  Full,   ///< all that its events and reports say; some 700 bytes, at most 50 KiB
  Brief,  ///< without the details of what woke evictd, the message's annotations and containers' names; at most 16 KiB
  Least,  ///< without what woke evictd and how long each stage took, and of the message its beginning; at most 6 KiB
};

/// Of the pod only what names it and what its report needs; the ranking is not kept. Every text and every list has a
/// bound, whatever the pod brought with it. An identity is never shortened, for it would be another one's: where it is
/// longer than any real one, it is left out.
[[nodiscard]] v1::Eviction keep(const evict::EvictionRecord& record, Detail detail = Detail::Full);

/// An eviction as the state has it.
struct SavedEviction {
  const evict::EvictionRecord* record = nullptr;
  std::optional<core::Instant> until{};  ///< it is over, and remembered until then; absent: it is under way
};

/// Makes the state one text that fits into a slot of the state file. On the reactor, and on the way to a kill: an
/// eviction that has not changed since it was written last is not serialized again, and no text grows with what a pod
/// brought with it.
///
/// Where there is too much, the least important goes first: evictions that are over; the details of the others; the
/// back-offs; more details; then evictions under way, those whose containers are dead already before the rest. The
/// state machine's own state and the thresholds stay.
class StateWriter {
 public:
  /// `most`: bytes.
  explicit StateWriter(std::size_t most = StateFile::largest_content) : most_{most} {}

  /// `state`: all but the evictions. It is cleared in part where there is too much. The same state gives the same text.
  [[nodiscard]] std::string write(v1::AgentState& state, const std::vector<SavedEviction>& evictions);

  /// Whether something had to go the last time.
  [[nodiscard]] bool has_shed() const { return shed_; }

 private:
  /// What of a record may change while it is under way, and what it has become at each detail.
  struct Text {
    evict::EvictionRecord as_written;
    std::optional<core::Instant> until;
    std::array<std::string, 3> at_detail{};  // "": not needed so far
    bool used = true;
  };
  [[nodiscard]] Text& text_of(const SavedEviction& eviction);
  [[nodiscard]] const std::string& at(Text& text, Detail detail) const;
  [[nodiscard]] std::size_t size(const std::vector<Text*>& texts, Detail detail) const;

  std::size_t most_;
  std::map<std::pair<std::uint64_t, bool>, Text> texts_;  // by the eviction's id, and whether it is over
  bool shed_ = false;
};

}  // namespace evictd::state
