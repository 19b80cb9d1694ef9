#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "async/worker.hpp"
#include "core/duration.hpp"
#include "node/pod_directories.hpp"

namespace evictd::node {

/// How pods' directories are measured.
struct PodDiskSettings {
  PodRoots roots;
  /// What was measured is due again after this time. (`node.diskUsageInterval`)
  core::Duration interval = std::chrono::minutes(1);
  /// After so long of one pod another has its turn; the walk goes on later where it was. Nearly all pods are done by
  /// then, and need not share their time with others.
  core::Duration slice = std::chrono::seconds(2);
  /// A caller goes on when the slice is over that is under way after this time, however many pods it asked for, with
  /// what was seen until then; the walks do not end. A walk that takes longer is not waited for any more. A pod with a
  /// million files takes 4 s from a warm cache.
  core::Duration patience = std::chrono::seconds(20);
  /// So many walks that were not over with their first slice keep what they have seen, which is some 20 MiB each where
  /// somebody means ill (disk_usage.hpp), and one more during its slice. Others begin anew when there is room.
  std::ptrdiff_t most_begun = 2;
  /// A slice that is not over by so much after its time is held by a system call, which may never return: its thread is
  /// given up, and another one goes on with the other pods. A disk that is merely busy answers each call within less.
  core::Duration hang = std::chrono::seconds(10);
  /// With so many threads given up, more would be given up for the same disk: walks are refused until one returns.
  std::size_t most_given_up = 4;
  /// More than a disk has inodes: only who makes and removes files faster than they are looked at ends the walk so.
  std::int64_t max_entries = 50'000'000;
};

/// What is known of the pods' logs and local volumes.
///
/// Directories are walked beside the reactor, by one worker at a time, which keeps a disk busy enough; what was found
/// comes back to the reactor, so that looking it up costs nothing and never waits. Pods take turns, so that one with
/// too many files keeps the others' measuring waiting for no longer than its slice: where many have more files than
/// that, those with the fewest are done first. One whose walk took seconds is not due again before four times as long
/// has passed. A walk that hangs is given up with its worker, and the pod cannot be measured until that returns.
/// Everything here is for the reactor's thread. Nothing waits for a walk when this goes.
class PodDisk {
 public:
  /// Absent where none can be had.
  using MakeWorker = std::move_only_function<std::unique_ptr<async::Worker>()>;

  PodDisk(boost::asio::any_io_executor reactor, MakeWorker make_worker, PodDiskSettings settings);
  PodDisk(const PodDisk&) = delete;
  PodDisk& operator=(const PodDisk&) = delete;
  ~PodDisk();

  /// What the last measuring of the pod found, null before the first.
  [[nodiscard]] std::shared_ptr<const PodDiskReading> known(std::string_view uid) const;

  /// Whether the pod's walk hangs, or was refused and nothing is known of the pod: its usage cannot be given.
  [[nodiscard]] bool is_out_of_reach(std::string_view uid) const;

  /// After which a reading is too old.
  [[nodiscard]] core::Duration interval() const;

  /// Those of the pods that were never measured, were marked since, or whose reading is older than the interval. A pod
  /// that is being measured already is not due, unless it was marked meanwhile; nor is any, marked or not, that went
  /// beyond `patience` and is walked on, or whose last walk took long and that rests for four times as long.
  [[nodiscard]] std::vector<PodName> due(std::span<const PodName> pods, core::Instant now) const;

  /// Measures these pods now, the first ones first, and returns when all are known or `patience` is over, of which what
  /// others asked for before takes its part. Of those that are not, the last complete reading is known still, or else
  /// one that is not, until the walk ends. Neither pods out of reach nor walks of more than `patience` are waited for.
  /// Walks of one pod never run twice at the same time: where one is under way it is waited for instead, and where the
  /// pod was marked since it began, or layers are asked for that it does not look at, another follows. For as long as
  /// somebody waits who asked for a pod's layers, every walk of the pod looks at them.
  [[nodiscard]] boost::asio::awaitable<void> measure(std::vector<PodName> pods);

  /// Something in the pod's directories changed: it is due. Nothing happens for pods that are not known.
  void mark_dirty(std::string_view uid);

  /// Forgets the pods that are not among these.
  void keep_only(std::span<const PodName> pods);

 private:
  struct State;  // outlives this while a caller waits

  std::shared_ptr<State> state_;
};

}  // namespace evictd::node
