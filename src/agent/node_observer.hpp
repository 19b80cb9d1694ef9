#pragma once
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/observer.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/signal_reader.hpp"

namespace evictd::agent {

/// Reads all of the node's signals at once: some 30 µs. Of the disks, which may not answer, it is their last reading
/// (node::NodeDisk); the rest is read now. What cannot be read has no observation and is logged once,
/// until it can be read again; without its memory there is no reading.
class NodeObserver final : public Observer {
 public:
  /// `readers`: of all signals that are not of memory, `disk` among them.
  NodeObserver(node::NodeMemory& memory, node::NodeDisk& disk, std::span<node::SignalReader* const> readers)
      : memory_{memory}, disk_{disk}, readers_{readers.begin(), readers.end()} {}

  [[nodiscard]] Result<node::NodeMemoryReading> read(core::Instant now) override;
  [[nodiscard]] Result<node::NodeMemoryReading> read_memory(core::Instant now) override;
  /// The same with disks that are read now, as far as they answer: mostly within a millisecond, at the latest after
  /// node::DiskReader::patience.
  [[nodiscard]] boost::asio::awaitable<Result<node::NodeMemoryReading>> read_with_disks() override;

  /// The observations with the memory signals read again, as far as they can be: nothing is opened.
  [[nodiscard]] core::Observations with_memory_now(core::Observations observations, core::Instant now) const override;

  /// Of the last reading. Absent: no reading has told it yet.
  [[nodiscard]] std::optional<core::FilesystemLayout> layout() const override { return disk_.layout(); }

 private:
  /// What memory says, with what the other readers said last.
  [[nodiscard]] Result<node::NodeMemoryReading> with_others(Result<node::NodeMemoryReading> reading);
  void complain(std::set<std::string> messages);

  node::NodeMemory& memory_;
  node::NodeDisk& disk_;
  std::vector<node::SignalReader*> readers_;
  core::Observations others_;                // what these read last
  std::set<std::string> others_complaints_;  // what they could not read then
  std::set<std::string> complaints_;         // of the last reading
};

}  // namespace evictd::agent
