#pragma once
#include <evictd.pb.h>
#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace bench::soak {

using evictd::v1::Event;

/// What each number stands for, as everyone together is told it. From any thread.
class Ledger {
 public:
  /// False: somebody was told something else by this number.
  [[nodiscard]] bool agrees(const Event& event) {
    // As text: its bytes are the same each time only if its maps are written in order, and the text has them so.
    const auto digest = std::hash<std::string>{}(event.ShortDebugString());
    const std::lock_guard lock{mutex_};
    if (newest_ < event.sequence()) newest_ = event.sequence();
    return digests_.try_emplace(event.sequence(), digest).first->second == digest;
  }
  /// The highest number that somebody was told.
  [[nodiscard]] std::uint64_t newest() const { return newest_; }

 private:
  std::mutex mutex_;
  std::atomic<std::uint64_t> newest_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> digests_;  // by number
};

/// What one subscriber without a filter is told: every number after the one it knew, each once, as an event or within a
/// GAP. It goes on over streams that resume.
class Diary {
 public:
  explicit Diary(Ledger& ledger) : ledger_{ledger} {}

  /// A stream begins after a number, or (nothing) with a snapshot or wherever the agent is.
  void begin(std::optional<std::uint64_t> after) { last_ = after; }
  /// What is wrong with the event; empty: nothing.
  [[nodiscard]] std::string read(const Event& event) {
    switch (event.kind()) {
      case Event::SNAPSHOT:
        return last_ ? "a SNAPSHOT that is not the first message" : follows(event.sequence(), event.sequence());
      case Event::HEARTBEAT:
        if (last_.value_or(event.sequence()) == event.sequence()) return "";
        return fmt::format("a HEARTBEAT of {} after {}", event.sequence(), *last_);
      case Event::GAP:
        ++gaps_;
        if (event.gap().to() != event.sequence())
          return fmt::format("a GAP to {} of number {}", event.gap().to(), event.sequence());
        return follows(event.gap().from(), event.gap().to());
      default: break;
    }
    ++events_;
    const bool agrees = ledger_.agrees(event);
    auto wrong = follows(event.sequence(), event.sequence());
    if (wrong.empty() && !agrees) wrong = fmt::format("event {} is not what another was told", event.sequence());
    return wrong;
  }

  /// The number read last: where to resume. Nothing: none yet.
  [[nodiscard]] std::optional<std::uint64_t> last() const { return last_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }

 private:
  [[nodiscard]] std::string follows(std::uint64_t first, std::uint64_t last) {
    const auto before = last_;
    last_ = last;
    if (last < first) return fmt::format("numbers {} to {}", first, last);
    if (!before || first == *before + 1) return "";
    return fmt::format("after {} comes {}", *before, first);
  }

  Ledger& ledger_;
  std::optional<std::uint64_t> last_;
  std::uint64_t events_ = 0;
  std::uint64_t gaps_ = 0;
};

}  // namespace bench::soak
