#pragma once
#include <boost/asio/awaitable.hpp>
#include <set>
#include <string>

#include "agent/observer.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"

namespace evictd::agent {

/// Reads all of the node's signals at once: some 30 µs. Memory and process ids are read now; of the disks, which may
/// not answer, it is their last reading (node::NodeDisk). What cannot be read has no observation and is logged once,
/// until it can be read again; without its memory there is no reading.
class NodeObserver final : public Observer {
 public:
  NodeObserver(node::NodeMemory& memory, node::NodeDisk& disk, node::NodePids& pids)
      : memory_{memory}, disk_{disk}, pids_{pids} {}

  [[nodiscard]] Result<node::NodeMemoryReading> read(core::Instant now) override;
  /// The same with disks that are read now, as far as they answer: mostly within a millisecond, at the latest after
  /// node::DiskReader::patience.
  [[nodiscard]] boost::asio::awaitable<Result<node::NodeMemoryReading>> read_with_disks() override;

  /// The observations with the memory signals read again, as far as they can be: nothing is opened.
  [[nodiscard]] core::Observations with_memory_now(core::Observations observations, core::Instant now) const override;

  /// Of the last reading.
  [[nodiscard]] core::FilesystemLayout layout() const override { return disk_.layout(); }

 private:
  void complain(std::set<std::string> messages);

  node::NodeMemory& memory_;
  node::NodeDisk& disk_;
  node::NodePids& pids_;
  std::set<std::string> complaints_;  // of the last reading
};

}  // namespace evictd::agent
