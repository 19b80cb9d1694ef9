#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/filesystem_layout.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// Which limit of a pod's own was passed; the names are the kubelet's metric labels.
enum class LocalStorageLimit : std::uint8_t { EmptyDir, Pod, Container };
/// "emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit"
[[nodiscard]] std::string_view name(LocalStorageLimit limit);

struct LimitViolation {
  LocalStorageLimit limit = LocalStorageLimit::EmptyDir;
  std::string message;

  friend bool operator==(const LimitViolation&, const LimitViolation&) = default;
};

/// Whether the pod sets any limit that `first_violation` would look at.
[[nodiscard]] bool has_local_storage_limits(const Pod& pod);

/// The first limit passed: emptyDir volumes in the order of the spec, then the pod's ephemeral-storage limit, then the
/// containers' (kubelet-spec section 7). A critical pod has no violation: the kubelet refuses to evict it and looks on.
[[nodiscard]] std::optional<LimitViolation> first_violation(const Pod& pod, const PodUsage& usage,
                                                            FilesystemLayout layout);

}  // namespace evictd::core
