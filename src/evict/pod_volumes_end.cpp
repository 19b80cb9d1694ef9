#include "evict/pod_volumes_end.hpp"

#include <boost/asio/post.hpp>
#include <cstddef>
#include <deque>
#include <utility>

#include "async/awaited.hpp"
#include "async/offload.hpp"
#include "async/spawn.hpp"
#include "core/printable.hpp"
#include "evict/pod_volumes.hpp"
#include "node/cgroup_processes.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::evict {

/// Whose turn it is to have a piece removed: first come, first served. Who needs another piece comes behind the others,
/// so that a pod with very many files keeps the space of none from coming back.
struct PodVolumesEnd::Queue {
  /// By who has the turn, or for him once his piece is over.
  void pass_on() {
    is_taken = !waiting.empty();
    if (!is_taken) return;
    waiting.front()->deliver(true);
    waiting.pop_front();
  }

  bool is_taken = false;  // a piece is under way, or about to be
  std::deque<std::shared_ptr<async::Awaited<bool>>> waiting;
};

PodVolumesEnd::PodVolumesEnd(asio::any_io_executor reactor, Parts parts)
    : reactor_{std::move(reactor)}, parts_{std::move(parts)}, queue_{std::make_shared<Queue>()} {}

PodVolumesEnd::~PodVolumesEnd() {
  for (const auto& pod : going_on_) os::log_warning("{}: some of its emptyDirs are left behind: evictd ends", pod);
}

asio::awaitable<std::string> PodVolumesEnd::awaited(pods::RuntimePodPtr pod, core::Instant give_up) {
  if (parts_.mode == RemoveVolumes::never) co_return std::string{};
  const auto outcome = co_await remove(pod, give_up);
  if (outcome == Outcome::over) co_return std::string{};
  if (pod->cgroup.empty())
    os::log_warning("{}: some of its emptyDirs are left behind: there was no time to remove them", pod->pod->key());
  else
    async::spawn(reactor_, go_on(std::move(pod), os::now() + longest_removal), "removing an evicted pod's emptyDirs");
  co_return std::string{"the pod's emptyDirs"};
}

asio::awaitable<void> PodVolumesEnd::go_on(pods::RuntimePodPtr pod, core::Instant give_up) {
  const auto key = pod->pod->key();
  going_on_.insert(key);
  const auto outcome = co_await remove(std::move(pod), give_up);
  going_on_.erase(key);
  if (outcome == Outcome::late)
    os::log_warning("{}: some of its emptyDirs are left behind: removing them took longer than {}", key,
                    core::to_string(longest_removal));
}

asio::awaitable<PodVolumesEnd::Outcome> PodVolumesEnd::remove(pods::RuntimePodPtr pod, core::Instant give_up) {
  std::size_t files = 0;
  for (;;) {
    const bool has_turn = co_await take_turn(give_up);
    if (!has_turn) co_return Outcome::late;
    const auto elses = co_await is_somebody_elses(*pod, give_up);
    if (!elses || *elses) {
      queue_->pass_on();
      co_return elses ? Outcome::over : Outcome::late;
    }
    const auto removed = co_await remove_a_piece(pod, give_up);
    if (!removed) co_return Outcome::late;
    files += removed->files;
    if (removed->out_of_time) continue;
    if (files > 0) os::log_info("{}: removed its emptyDirs with {} files", pod->pod->key(), files);
    if (removed->error)
      os::log_warning("{}: something is left of its emptyDirs: {}", pod->pod->key(),
                      core::printable(removed->error->message));
    co_return Outcome::over;
  }
}

/// Nothing where the disk does not answer in time; then nobody has a turn until it has.
asio::awaitable<std::optional<Removed>> PodVolumesEnd::remove_a_piece(pods::RuntimePodPtr pod, core::Instant give_up) {
  auto work = [root = parts_.kubelet_root, uid = pod->pod->uid, longest = parts_.longest_piece, reactor = reactor_,
               queue = std::weak_ptr{queue_}] {
    auto removed = remove_empty_dirs(root, uid, os::now() + longest);
    asio::post(reactor, [queue] {
      if (const auto there = queue.lock()) there->pass_on();
    });
    return removed;
  };
  auto piece = async::offload(remover_.get_executor(), std::move(work), give_up);
  auto removed = co_await std::move(piece);
  co_return removed;
}

/// One after the other: what is found out before a piece holds while it is removed. False: the time is over.
asio::awaitable<bool> PodVolumesEnd::take_turn(core::Instant give_up) {
  if (!std::exchange(queue_->is_taken, true)) co_return true;
  const auto turn = std::make_shared<async::Awaited<bool>>(reactor_, give_up);
  queue_->waiting.push_back(turn);
  const auto came = co_await async::Awaited<bool>::wait(turn);
  if (!came) std::erase(queue_->waiting, turn);
  co_return came.has_value();
}

/// A kubelet's, or those of a pod that runs. Nothing where that cannot be told in time.
asio::awaitable<std::optional<bool>> PodVolumesEnd::is_somebody_elses(const pods::RuntimePod& pod,
                                                                      core::Instant give_up) {
  std::optional<bool> kubelet_runs = false;
  if (parts_.mode == RemoveVolumes::where_no_kubelet_runs) kubelet_runs = co_await parts_.kubelet.kubelet_runs(give_up);
  if (kubelet_runs && runs_again(pod)) co_return true;
  co_return kubelet_runs;
}

/// A pod without a cgroup to itself cannot be seen; nothing of it was there a moment ago.
bool PodVolumesEnd::runs_again(const pods::RuntimePod& pod) const {
  if (pod.cgroup.empty()) return false;
  return !node::is_empty_or_gone(parts_.hierarchy, pod.cgroup).value_or(false);
}

}  // namespace evictd::evict
