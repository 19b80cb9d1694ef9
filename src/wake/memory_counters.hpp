#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "node/directory.hpp"
#include "wake/polled_file.hpp"

namespace evictd::wake {

/// The lines of a v2 cgroup's memory.events that evictd looks at. Counters only grow; a kernel without one says 0.
struct MemoryCounters {
  std::int64_t high = 0;      ///< memory.high was exceeded, and the allocator held
  std::int64_t max = 0;       ///< memory.max was about to be exceeded
  std::int64_t oom = 0;       ///< and reclaim did not help
  std::int64_t oom_kill = 0;  ///< processes killed; with memory.oom.group the first of them counts twice

  friend bool operator==(const MemoryCounters&, const MemoryCounters&) = default;
};

[[nodiscard]] MemoryCounters parse_memory_counters(std::string_view table);

/// memory.events or memory.events.local of a cgroup, read whenever the kernel says that it changed.
///
/// The kernel speaks at most once in 10 to 20 ms a file, and always after the last change: its notices are never
/// counted, the counters are compared.
class MemoryCountersFile {
 public:
  using Handler = std::function<void(const MemoryCounters& before, const MemoryCounters& now)>;

  /// `on_change` is called when a counter grew, at most every 100 ms: a container at its own limit counts `max` up
  /// without end, and each call is a pass.
  MemoryCountersFile(boost::asio::any_io_executor reactor, Handler on_change)
      : polled_{std::move(reactor)}, on_change_{std::move(on_change)} {}

  /// Opens the file where it is not open, or where it belongs to an earlier cgroup of this name. `on_change` tells only
  /// of what comes after.
  [[nodiscard]] node::FileResult<void> keep_open(const node::Directory& cgroup, std::string_view name);
  void close() { polled_.close(); }

  /// As read last; nothing while there is no file.
  [[nodiscard]] std::optional<MemoryCounters> counters() const;

 private:
  void changed();

  PolledFile polled_;
  Handler on_change_;
  MemoryCounters counters_;
  std::uint64_t inode_ = 0;  // of the cgroup whose file is open
};

}  // namespace evictd::wake
