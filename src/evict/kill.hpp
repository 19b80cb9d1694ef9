#pragma once
#include <sys/types.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "node/cgroup.hpp"
#include "node/file_descriptor.hpp"

namespace evictd::evict {

/// A process that was sent SIGKILL, held by a descriptor that never comes to mean another process.
struct Signalled {
  pid_t pid = 0;
  node::FileDescriptor pidfd;
};

struct Kill {
  std::vector<Signalled> processes;      ///< each once
  std::string_view method = "SIGKILL";   ///< or "cgroup.kill"
  std::optional<core::Instant> first{};  ///< when the first signal was sent; absent: there was nobody
};

/// Whom no eviction may hit, wherever they are: evictd, the runtime, its shims, a kubelet.
using IsProtected = std::function<bool(pid_t)>;

/// Sends SIGKILL to every process in these cgroups and those below them, and to nobody else; 50 µs for a process, and
/// the caller does not wait for their ends. A killed process allocates nothing more from the moment the signal lands.
///
/// cgroup v2: cgroup.kill (Linux 5.14) takes them all at once. v1, and v2 where that file is missing or somebody
/// protected is among them: each process is held by a pidfd (pidfd_open(2), Linux 5.3) and signalled only if its cgroup
/// still lists it then, so a reused pid cannot hit a stranger; this is repeated until a look brings nobody new, since
/// forks may have been under way. A killed process cannot fork.
///
/// Cgroups that are gone count as empty. Error: one could not be read, or a process not be signalled; or one does not
/// lie in `pods_cgroup`, where all pods are: then nobody is signalled at all.
[[nodiscard]] Result<Kill> kill_cgroups(const node::CgroupHierarchy& hierarchy, std::string_view pods_cgroup,
                                        std::span<const std::string> cgroups, const IsProtected& is_protected);

}  // namespace evictd::evict
