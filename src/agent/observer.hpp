#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "node/node_memory.hpp"

namespace evictd::agent {

/// The node's counters, as the loop reads them. On the reactor.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  /// All signals, without waiting for anything. Memory and process ids are read now; a disk has the numbers that it
  /// gave last. Error: the node's memory cannot be read.
  [[nodiscard]] virtual Result<node::NodeMemoryReading> read(core::Instant now) = 0;
  /// For a wake-up that memory alone can have been the reason of: what memory is used is read now. All else, and the
  /// limits of the cgroups, is as the last read() found it, with the time of that.
  [[nodiscard]] virtual Result<node::NodeMemoryReading> read_memory(core::Instant now) = 0;
  /// All signals, with disks that are read now, as far as they answer; has a deadline.
  [[nodiscard]] virtual boost::asio::awaitable<Result<node::NodeMemoryReading>> read_with_disks() = 0;
  /// The observations with the memory signals read again, as far as they can be: nothing is opened.
  [[nodiscard]] virtual core::Observations with_memory_now(core::Observations observations,
                                                           core::Instant now) const = 0;
  /// Of the last reading. Absent: no reading has told it yet.
  [[nodiscard]] virtual std::optional<core::FilesystemLayout> layout() const = 0;
};

}  // namespace evictd::agent
