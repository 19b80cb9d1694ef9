#include "evict/pod_volumes_end.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "async/offload.hpp"
#include "async/spawn.hpp"
#include "core/printable.hpp"
#include "evict/pod_volumes.hpp"
#include "node/cgroup_processes.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {
namespace {

/// After each it is looked whether somebody has started the pod again, and others' volumes have their turn.
constexpr core::Duration longest_piece = 1s;

}  // namespace

PodVolumesEnd::PodVolumesEnd(asio::any_io_executor reactor, Parts parts)
    : reactor_{std::move(reactor)}, parts_{std::move(parts)} {}

asio::awaitable<std::string> PodVolumesEnd::awaited(pods::RuntimePodPtr pod, core::Instant give_up) {
  const bool removes = co_await may_remove(give_up);
  if (!removes) co_return std::string{};
  const auto outcome = co_await remove(pod, give_up);
  if (outcome == Outcome::over) co_return std::string{};
  async::spawn(reactor_, go_on(std::move(pod), os::now() + longest_removal), "removing an evicted pod's emptyDirs");
  co_return std::string{"the pod's emptyDirs"};
}

/// Where that cannot be told in time a kubelet may run.
asio::awaitable<bool> PodVolumesEnd::may_remove(core::Instant give_up) {
  if (parts_.mode != RemoveVolumes::where_no_kubelet_runs) co_return parts_.mode == RemoveVolumes::always;
  auto look = async::offload(remover_.get_executor(), parts_.kubelet_runs, give_up);
  const auto kubelet_runs = co_await std::move(look);
  co_return kubelet_runs && !*kubelet_runs;
}

asio::awaitable<PodVolumesEnd::Outcome> PodVolumesEnd::remove(pods::RuntimePodPtr pod, core::Instant give_up) {
  std::size_t files = 0;
  for (;;) {
    if (runs_again(*pod)) co_return Outcome::over;
    auto work = [root = parts_.kubelet_root, uid = pod->pod->uid] {
      return remove_empty_dirs(root, uid, os::now() + longest_piece);
    };
    auto piece = async::offload(remover_.get_executor(), std::move(work), give_up);
    const auto removed = co_await std::move(piece);
    if (!removed) co_return Outcome::late;
    files += removed->files;
    const bool is_over = !removed->error || removed->error->code != ETIME;
    if (is_over && files > 0) os::log_info("{}: removed its emptyDirs with {} files", pod->pod->key(), files);
    if (is_over && removed->error)
      os::log_warning("{}: something is left of its emptyDirs: {}", pod->pod->key(),
                      core::printable(removed->error->message));
    if (is_over) co_return Outcome::over;
    if (os::now() >= give_up) co_return Outcome::late;
  }
}

asio::awaitable<void> PodVolumesEnd::go_on(pods::RuntimePodPtr pod, core::Instant give_up) {
  const auto outcome = co_await remove(pod, give_up);
  if (outcome == Outcome::late)
    os::log_warning("{}: its emptyDirs are left behind: removing them took longer than {}", pod->pod->key(),
                    core::to_string(longest_removal));
}

/// A pod without a cgroup to itself cannot be seen; nothing of it was there a moment ago.
bool PodVolumesEnd::runs_again(const pods::RuntimePod& pod) const {
  if (pod.cgroup.empty()) return false;
  return !node::is_empty_or_gone(parts_.hierarchy, pod.cgroup).value_or(false);
}

}  // namespace evictd::evict
