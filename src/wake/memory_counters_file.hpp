#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "wake/memory_counters.hpp"
#include "wake/polled_file.hpp"

namespace evictd::wake {

/// memory.events or memory.events.local of a cgroup, read whenever the kernel says that it changed.
///
/// The kernel notifies at most once in 10 to 20 ms a file, and always after the last change: its notices are never
/// counted, the counters are compared.
class MemoryCountersFile {
 public:
  using Handler = std::function<void(const MemoryCounters& before, const MemoryCounters& now)>;

  /// `on_change` is called when a counter grew, at most every 100 ms: a container at its own limit counts `max` up
  /// without end, and each call is a pass.
  MemoryCountersFile(boost::asio::any_io_executor reactor, Handler on_change)
      : polled_{std::move(reactor)}, on_change_{std::move(on_change)} {}

  /// Opens the file where it is not open, or where it belongs to an earlier cgroup of this name. `on_change` tells only
  /// of what comes after. Returns whether it was opened by this call.
  [[nodiscard]] os::FileResult<bool> keep_open(const os::Directory& cgroup, std::string_view name);
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
