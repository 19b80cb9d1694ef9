#pragma once
#include <evictd.pb.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace bench::soak {

/// What each number stands for, as everyone together is told it. From any thread.
class Ledger {
 public:
  /// False: somebody was told something else by this number.
  [[nodiscard]] bool agrees(const evictd::v1::Event& event);
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
  [[nodiscard]] std::string read(const evictd::v1::Event& event);

  /// The number read last: where to resume. Nothing: none yet.
  [[nodiscard]] std::optional<std::uint64_t> last() const { return last_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }

 private:
  [[nodiscard]] std::string follows(std::uint64_t first, std::uint64_t last);

  Ledger& ledger_;
  std::optional<std::uint64_t> last_;
  std::uint64_t events_ = 0;
  std::uint64_t gaps_ = 0;
};

}  // namespace bench::soak
