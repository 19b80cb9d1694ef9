#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/pod.hpp"

// Where the cgroups of pods and containers are, from the names that CRI gives. All paths returned are absolute below
// the root of the cgroup hierarchy ("/kubepods/burstable/pod1234"), without a trailing slash.
namespace evictd::pods {

struct PodCgroup {
  std::string path;
  core::QosClass qos;  ///< which of the kubelet's three places it is in

  friend bool operator==(const PodCgroup&, const PodCgroup&) = default;
};

/// The pod's own cgroup, from its sandbox's cgroup_parent: with cgroupfs "/kubepods/burstable/pod<uid>", with systemd
/// "kubepods-burstable-pod<uid>.slice", alone or as the last part of a path, the uid's '-' written as '_'. "besteffort"
/// likewise; Guaranteed pods lie one level higher. (kubelet: podContainerManagerImpl.GetPodContainerName)
///
/// Nothing if the last part does not carry this very uid: whatever kills or measures a pod by its cgroup must not hit
/// a parent that it shares with others.
[[nodiscard]] std::optional<PodCgroup> pod_cgroup(std::string_view cgroup_parent, std::string_view uid);

/// The uid in the name of a pod's own cgroup, of either form; nothing if it is not such a name, or not printable. With
/// systemd every '_' stands for a '-' here: uids have none.
[[nodiscard]] std::optional<std::string> uid_in_cgroup_name(std::string_view name);

/// A container's cgroup, from the OCI cgroupsPath: a path with cgroupfs, "SLICE:PREFIX:NAME" with systemd, which stands
/// for SLICE/PREFIX-NAME.scope (runc, libcontainer/specconv). Empty if it is neither.
[[nodiscard]] std::string container_cgroup(std::string_view cgroups_path);

/// Whether the cgroup lies in the other, at whatever depth, and is not it. Neither may be one that leads elsewhere.
[[nodiscard]] bool is_below(std::string_view cgroup, std::string_view parent);

/// "a-b.slice" lies in "a.slice": "/a.slice/a-b.slice" (systemd.slice(5)). Empty if it is not a slice's name.
[[nodiscard]] std::string expand_slice(std::string_view slice);

}  // namespace evictd::pods
