#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/memory_sample.hpp"
#include "async/worker.hpp"
#include "core/duration.hpp"
#include "node/pod_memory_snapshot.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {

/// Keeps who held what of the pods that would go first, so that an eviction can be explained: once they are killed
/// nobody can tell any more. On the reactor; all reading is done by a thread of its own, so that a kill neither waits
/// for it nor makes a system call more before its first signal.
class BlackBox {
 public:
  static constexpr std::size_t most_pods = 8;
  static constexpr core::Duration between_looks = std::chrono::seconds(1);
  /// Of all pods together in one look: 10 ms at most for that thread (20 µs each).
  static constexpr std::size_t most_processes = 512;
  /// A snapshot older than this is of a pod that has become another one: it is read once more after the kill, and what
  /// shows more of its processes counts.
  static constexpr core::Duration serves_for = std::chrono::seconds(5);
  /// How far back a pod's growth is kept.
  static constexpr core::Duration growth_kept = std::chrono::minutes(1);

  using SnapshotPtr = std::shared_ptr<const node::PodMemorySnapshot>;
  struct Found {
    SnapshotPtr snapshot;              ///< null: nothing could be read
    std::vector<MemorySample> growth;  ///< of the pod's usage, the oldest first
  };
  using Tell = std::move_only_function<void(const Found&)>;

  /// `worker`: null where there is no thread to be had; then nothing is ever found. It is the one that `reader` is
  /// called on.
  BlackBox(boost::asio::any_io_executor reactor, std::unique_ptr<async::Worker> worker,
           std::shared_ptr<const node::SnapshotReader> reader);
  BlackBox(const BlackBox&) = delete;
  BlackBox& operator=(const BlackBox&) = delete;

  /// These may go soon, the likeliest first: has them read, at most once in `between_looks`, and forgets the others.
  void look(std::span<const pods::RuntimePodPtr> pods, core::Instant now);
  /// The pod is told to end, and is not killed yet: what is kept of it stays until killed(), and it is read once more.
  void begun(const pods::RuntimePodPtr& pod);
  /// The pod was killed. `tell` is called once, in a later turn of the reactor: with the freshest snapshot, or where
  /// none serves with one that is read now. Never where the thread hangs.
  void killed(const pods::RuntimePod& pod, core::Instant time, Tell tell);
  /// Of how many pods there is a snapshot.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Kept {
    SnapshotPtr snapshot;
    std::deque<MemorySample> growth;
  };
  struct Looked;
  struct Asked;

  void read(std::span<const pods::RuntimePodPtr> pods);
  void keep(Kept& kept, node::PodMemorySnapshot snapshot) const;
  void took(Looked& looked);
  void finish(const std::shared_ptr<Asked>& asked, std::optional<node::PodMemorySnapshot> read);

  boost::asio::any_io_executor reactor_;
  std::unique_ptr<async::Worker> worker_;
  std::shared_ptr<const node::SnapshotReader> reader_;
  std::map<std::string, Kept, std::less<>> kept_;   // by uid: those that may go
  std::map<std::string, Kept, std::less<>> going_;  // the same: those that were told to end
  std::vector<std::shared_ptr<Asked>> asked_;       // killed pods that are being read
  core::Instant looked_ = core::Instant::min();
  bool is_looking_ = false;
};

}  // namespace evictd::agent
