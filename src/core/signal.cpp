#include "core/signal.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

namespace evictd::core {
namespace {

using namespace std::chrono_literals;
using enum NodeCondition;

/// 4 MiB: two huge pages, more than the counters' own coarseness.
constexpr Pace memory_pace{.rate = 0, .fastest = double{1LL << 36}, .shortest = 1ms, .step = 4LL << 20};

/// A fast disk writes some GiB a second; the page cache takes more for a moment, and preallocation any amount at once,
/// which no look can foresee. Thresholds are GiB: looking every 10 ms lets 22 MiB pass.
constexpr Pace disk_pace{
    .rate = double{2LL << 30}, .fastest = double{16LL << 30}, .shortest = 10ms, .step = 16LL << 20};

/// Some processors together create 500,000 files a second where they share nothing (tmpfs, XFS groups); thresholds are
/// many thousands.
constexpr Pace inode_pace{.rate = 500'000, .fastest = 4'000'000, .shortest = 10ms, .step = 1000};

/// fork(2) takes 50 µs and more, a thread 10 µs; reading the count takes 7 µs, so not more often than every 10 ms.
constexpr Pace pid_pace{.rate = 100'000, .fastest = 1'000'000, .shortest = 10ms, .step = 16};

constexpr SignalRow memory(std::string_view name) {
  return {name, "memory", bytes_unit, MemoryPressure, RankBy::Memory, memory_pace};
}
constexpr SignalRow space(std::string_view name) {
  return {name, "ephemeral-storage", bytes_unit, DiskPressure, RankBy::EphemeralStorage, disk_pace};
}
constexpr SignalRow inodes(std::string_view name) {
  return {name, "inodes", "inodes", DiskPressure, RankBy::Inodes, inode_pace};
}

struct Table {
  std::array<SignalRow, signal_capacity> rows;
  std::size_t size;
};

// The kubelet's, in the order of `Signal`. (kubelet: signalToNodeCondition, signalToResource)
constinit Table table{{{
                          memory("memory.available"),
                          memory("allocatableMemory.available"),
                          space("nodefs.available"),
                          inodes("nodefs.inodesFree"),
                          space("imagefs.available"),
                          inodes("imagefs.inodesFree"),
                          space("containerfs.available"),
                          inodes("containerfs.inodesFree"),
                          {"pid.available", "pids", "pids", PidPressure, RankBy::Processes, pid_pace},
                      }},
                      9};

constexpr auto every_place = [] {
  std::array<Signal, signal_capacity> signals{};
  for (std::size_t place = 0; place < signals.size(); ++place) signals[place] = static_cast<Signal>(place);
  return signals;
}();

}  // namespace

Signal define_signal(const SignalRow& row) {
  if (table.size == table.rows.size()) throw std::length_error("there is no room for another signal");
  table.rows[table.size] = row;
  return every_place[table.size++];
}

std::span<const Signal> all_signals() { return std::span(every_place).first(table.size); }

const SignalRow& row_of(Signal signal) { return table.rows[index(signal)]; }

std::vector<std::string_view> signal_names() {
  std::vector<std::string_view> names;
  for (const auto signal : all_signals()) names.push_back(name(signal));
  return names;
}

std::optional<Signal> parse_signal(std::string_view text) {
  const auto found = std::ranges::find(all_signals(), text, [](Signal signal) { return name(signal); });
  if (found == all_signals().end()) return std::nullopt;
  return *found;
}

}  // namespace evictd::core
