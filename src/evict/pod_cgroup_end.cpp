#include "evict/pod_cgroup_end.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "async/offload.hpp"
#include "async/sleep.hpp"
#include "evict/emptied.hpp"
#include "evict/pod_cgroup_removal.hpp"
#include "node/cgroup_processes.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::evict {

PodCgroupEnd::PodCgroupEnd(Parts parts) : parts_{std::move(parts)} {}

asio::awaitable<std::string> PodCgroupEnd::awaited(pods::RuntimePodPtr pod, core::Instant give_up) {
  const std::string& cgroup = pod->cgroup;
  if (cgroup.empty()) co_return std::string{};
  const auto kubelet_runs = co_await parts_.kubelet.kubelet_runs(give_up);
  const bool remove = kubelet_runs && !*kubelet_runs && is_removable(cgroup, pod->pod->uid, parts_.pods_cgroup);
  if (kubelet_runs && !*kubelet_runs && !remove) co_return std::string{};
  core::Duration pause = 5ms;
  for (;;) {
    const auto gone = co_await is_over(cgroup, remove, give_up);
    if (!gone) os::log_warning("{}: its cgroup is left behind: {}", pod->pod->key(), gone.error().message);
    if (!gone || *gone) co_return std::string{};
    if (os::now() >= give_up) co_return std::string{"the pod's cgroup"};
    co_await async::sleep(pause);
    pause = std::min<core::Duration>(pause * 2, rarest_look);
  }
}

/// Also true of one in which somebody has started the pod again.
asio::awaitable<os::FileResult<bool>> PodCgroupEnd::is_over(std::string cgroup, bool remove, core::Instant give_up) {
  const auto empty = node::is_empty_or_gone(parts_.hierarchy, cgroup);
  if (!empty) co_return std::unexpected(empty.error());
  if (!*empty) co_return true;
  if (!remove) {
    const auto directory = parts_.hierarchy.memory(cgroup);
    co_return !directory && directory.error().is_gone();
  }
  std::function<os::FileResult<bool>()> work = [root = parts_.hierarchy.root().path(),
                                                version = parts_.hierarchy.version(),
                                                cgroup] { return remove_pod_cgroup(root, version, cgroup); };
  auto removal = async::offload(remover_.get_executor(), std::move(work), give_up);
  const auto removed = co_await std::move(removal);
  if (!removed) co_return false;
  co_return *removed;
}

}  // namespace evictd::evict
