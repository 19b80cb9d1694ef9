#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "node/cgroup.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::evict {

class ReadyStrike;

/// The cgroup of a pod's sandbox, in which the process lives that only keeps the pod's namespaces ("pause").
struct SandboxCgroup {
  std::string name;       ///< right below the pod's own cgroup
  std::int64_t held = 0;  ///< bytes of memory

  friend bool operator==(const SandboxCgroup&, const SandboxCgroup&) = default;
};

/// Which of the cgroups below the pod's own is its sandbox's. Direct kills leave that one to StopPodSandbox: containerd
/// 2.1 loses the shim of a sandbox whose process dies by another's signal while the exit of a container is pending.
///
/// It is the one that carries the sandbox's id: "ID" with cgroupfs, "cri-containerd-ID.scope" with systemd. Where its
/// name is made as the containers' are, no directory is listed to find it. Of a pod that no list names yet the id is
/// unknown; its sandbox is taken to be in the cgroup that was made first, which the inode numbers tell, provided that
/// it has one process and is no known container's: runtimes make the sandbox before the containers.
///
/// Nothing where no cgroup fits, where the pod has no cgroup to itself, and where the sandbox's holds more than a
/// process without work does: a runtime that puts a virtual machine there (Kata) or a kernel of its own (gVisor) has
/// the pod's memory in it, and that is what must be killed.
///
/// `ready`: may have its file open; null: nothing is.
[[nodiscard]] std::optional<SandboxCgroup> sandbox_cgroup(const node::CgroupHierarchy& hierarchy,
                                                          const pods::RuntimePod& pod,
                                                          const ReadyStrike* ready = nullptr);

/// The path that it has if the runtime names it as it names the containers'. Empty where that cannot be said.
[[nodiscard]] std::string expected_sandbox_cgroup(const pods::RuntimePod& pod);

}  // namespace evictd::evict
