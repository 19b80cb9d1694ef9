#pragma once
#include <string>
#include <vector>

#include "agent/clock.hpp"
#include "agent/decision_log.hpp"
#include "node/node_disk.hpp"
#include "wake/wakes.hpp"

namespace evictd::agent {

/// Begins a pass once the disks have been read for what woke an earlier one, and tells of a disk that does not answer:
/// once, and once more when it does again. On the reactor.
///
/// A wake-up trusts no number that is older than itself, and memory does not wait for a disk: so what woke a pass
/// begins another one when the disks have been read for it. Until then no disk threshold acts on the older numbers,
/// because an earlier pass had them (kubelet: thresholdsUpdatedStats).
class DiskWakes final : private node::NodeDisk::Listener {
 public:
  /// All of these must outlive this. It is the disk's listener.
  DiskWakes(node::NodeDisk& disk, wake::Wakes& wakes, DecisionLog& log, const Clock& clock);
  DiskWakes(const DiskWakes&) = delete;
  DiskWakes& operator=(const DiskWakes&) = delete;
  ~DiskWakes();

  /// A pass is over that this woke.
  void passed(const wake::Wake& wake);

 private:
  void disks_settled() override;
  void disk_fell_silent(const std::string& which, const Error& error) override;
  void disk_answers_again(const std::string& which, const std::string& what) override;

  node::NodeDisk& disk_;
  wake::Wakes& wakes_;
  DecisionLog& log_;
  const Clock& clock_;
  std::vector<wake::Reason> reasons_;  // of passes that the disks have not been read for yet
};

}  // namespace evictd::agent
