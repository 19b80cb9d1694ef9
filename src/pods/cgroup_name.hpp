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

/// A uid as the name of a pod's cgroup has it. A slice's name does not tell a '_' from a '-', so it fits several uids.
struct NamedUid {
  std::string uid;       ///< with systemd every '_' is taken for a '-', as in the uids that the API server makes
  bool escaped = false;  ///< it comes from a slice's name

  /// Whether the cgroup is of the pod with this uid.
  [[nodiscard]] bool is_of(std::string_view other) const;

  friend bool operator==(const NamedUid&, const NamedUid&) = default;
};

/// The uid in the name of a pod's own cgroup, of either form; nothing if it is not such a name, or not printable.
[[nodiscard]] std::optional<NamedUid> named_uid(std::string_view name);
/// The same, as far as the name tells it.
[[nodiscard]] std::optional<std::string> uid_in_cgroup_name(std::string_view name);
/// With '_' for every '-': what of a uid a slice's name tells.
[[nodiscard]] std::string escaped_uid(std::string_view uid);

/// A container's cgroup, from the OCI cgroupsPath: a path with cgroupfs, "SLICE:PREFIX:NAME" with systemd, which stands
/// for SLICE/PREFIX-NAME.scope (runc, libcontainer/specconv). Empty if it is neither.
[[nodiscard]] std::string container_cgroup(std::string_view cgroups_path);

/// Whether the cgroup lies in the other, at whatever depth, and is not it. Neither may be one that leads elsewhere.
[[nodiscard]] bool is_below(std::string_view cgroup, std::string_view parent);

/// "a-b.slice" lies in "a.slice": "/a.slice/a-b.slice" (systemd.slice(5)). Empty if it is not a slice's name.
[[nodiscard]] std::string expand_slice(std::string_view slice);

}  // namespace evictd::pods
