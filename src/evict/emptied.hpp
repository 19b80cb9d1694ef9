#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>

#include "core/duration.hpp"
#include "node/pod_cgroups.hpp"
#include "os/file_error.hpp"

namespace evictd::evict {

/// Where the kernel tells of the end, looking all the same costs 20 µs and guards against a word that is lost; where it
/// does not, the wait costs no more than the runtime's own bookkeeping.
inline constexpr core::Duration rarest_look = std::chrono::milliseconds(250);

/// What a look at a pod's cgroup says of its processes. One that cannot be read may have some still; a pod without a
/// cgroup to itself (EINVAL) has none to wait for, or as `without_cgroup` says.
[[nodiscard]] bool counts_as_empty(const os::FileResult<bool>& empty, bool without_cgroup = true);

/// Waits until the pod's cgroup has no process left or is gone: then true, at once where it is so already. False when
/// the deadline passes first. A pod without a cgroup to itself has nothing to wait for.
///
/// On cgroup v2 the kernel tells: "populated" of cgroup.events (cgroup-v2.rst, "[Un]populated Notification"). On v1 it
/// does not, so the cgroup is looked at after 5 ms, then at doubling intervals up to `at_the_latest`, which on v2 is
/// the only one; and no more often than that the looks take a twentieth of the time, where there are very many
/// processes. On the reactor; `cgroups` outlives the wait.
[[nodiscard]] boost::asio::awaitable<bool> emptied(boost::asio::any_io_executor reactor,
                                                   const node::PodCgroups& cgroups, std::string uid,
                                                   core::Instant deadline, core::Duration at_the_latest = rarest_look);

}  // namespace evictd::evict
