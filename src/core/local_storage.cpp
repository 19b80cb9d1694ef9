#include "core/local_storage.hpp"

#include <algorithm>
#include <array>

#include "core/pod_resources.hpp"
#include "core/saturating.hpp"

namespace evictd::core {
namespace {

constexpr std::string_view ephemeral_storage = "ephemeral-storage";

bool has_size_limit(const Volume& volume) {
  return volume.kind == Volume::Kind::EmptyDir && volume.size_limit && *volume.size_limit > Quantity{};
}

std::optional<Quantity> ephemeral_limit(const Container& container) {
  const auto limit = container.resources.limits.find(ephemeral_storage);
  if (limit == container.resources.limits.end() || limit->second.is_zero()) return std::nullopt;
  return limit->second;
}

/// Whether any container sets a limit, be it zero: the pod then has one, though a container's own limit of zero is
/// none.
bool has_ephemeral_limit(const Pod& pod) {
  const auto limited = [](const Container& container) {
    return container.resources.limits.contains(ephemeral_storage);
  };
  return std::ranges::any_of(pod.containers, limited) || std::ranges::any_of(pod.init_containers, limited);
}

std::optional<LimitViolation> empty_dir_violation(const Pod& pod, const PodUsage& usage) {
  for (const auto& volume : pod.volumes) {
    if (!has_size_limit(volume)) continue;
    const auto measured = usage.volumes.find(volume.name);
    if (measured == usage.volumes.end() || !measured->second.bytes) continue;
    if (Quantity::bytes(*measured->second.bytes) > *volume.size_limit)
      return LimitViolation{LocalStorageLimit::EmptyDir, "Usage of EmptyDir volume \"" + volume.name +
                                                             "\" exceeds the limit \"" +
                                                             volume.size_limit->to_string() + "\". "};
  }
  return std::nullopt;
}

std::optional<LimitViolation> pod_violation(const Pod& pod, const PodUsage& usage) {
  if (!has_ephemeral_limit(pod) || !usage.ephemeral) return std::nullopt;
  const auto limit = pod_limit(pod, ephemeral_storage);
  if (Quantity::bytes(*usage.ephemeral) <= limit) return std::nullopt;
  return LimitViolation{
      LocalStorageLimit::Pod,
      "Pod ephemeral local storage usage exceeds the total limit of containers " + limit.to_string() + ". "};
}

std::optional<LimitViolation> container_violation(const Pod& pod, const PodUsage& usage, FilesystemLayout layout) {
  for (const auto& measured : usage.containers) {
    const auto container = std::ranges::find(pod.containers, measured.name, &Container::name);
    if (container == pod.containers.end()) continue;
    const auto limit = ephemeral_limit(*container);
    if (!limit) continue;
    auto used = measured.logs.bytes.value_or(0);
    if (!layout.dedicated_imagefs) used = saturating_add(used, measured.rootfs.bytes.value_or(0));
    if (Quantity::bytes(used) > *limit)
      return LimitViolation{LocalStorageLimit::Container, "Container " + measured.name +
                                                              " exceeded its local ephemeral storage limit \"" +
                                                              limit->to_string() + "\". "};
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(LocalStorageLimit limit) {
  static constexpr std::array<std::string_view, 3> names{"emptydirfs.limit", "ephemeralpodfs.limit",
                                                         "ephemeralcontainerfs.limit"};
  return names[static_cast<std::size_t>(limit)];
}

bool has_local_storage_limits(const Pod& pod) {
  return std::ranges::any_of(pod.volumes, has_size_limit) || has_ephemeral_limit(pod);
}

std::optional<LimitViolation> first_violation(const Pod& pod, const PodUsage& usage, FilesystemLayout layout) {
  if (is_critical(pod)) return std::nullopt;
  if (auto violation = empty_dir_violation(pod, usage)) return violation;
  if (auto violation = pod_violation(pod, usage)) return violation;
  return container_violation(pod, usage, layout);
}

}  // namespace evictd::core
