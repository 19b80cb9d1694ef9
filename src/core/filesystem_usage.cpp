#include "core/filesystem_usage.hpp"

#include "core/saturating.hpp"

namespace evictd::core {
namespace {

void add(DiskTotals& totals, const DiskUsage& usage) {
  totals.bytes = saturating_add(totals.bytes, usage.bytes.value_or(0));
  totals.inodes = saturating_add(totals.inodes, usage.inodes.value_or(0));
}

}  // namespace

FilesystemParts parts_on(Signal signal, FilesystemLayout layout) {
  constexpr FilesystemParts everything{.logs = true, .local_volumes = true, .writable_layers = true};
  // Images themselves belong to no pod, so on a split imagefs no pod uses anything.
  if (layout.split) return is_imagefs(signal) ? FilesystemParts{} : everything;
  if (!layout.dedicated_imagefs) return everything;
  if (is_nodefs(signal)) return {.logs = true, .local_volumes = true};
  return {.writable_layers = true};
}

bool is_local(const Volume& volume) {
  using enum Volume::Kind;
  switch (volume.kind) {
    case EmptyDir: return volume.medium.empty();
    case HostPath:
    case ConfigMap:
    case GitRepo: return true;
    case Other: return false;
  }
  return false;
}

DiskTotals disk_usage(const Pod& pod, const PodUsage& usage, FilesystemParts parts) {
  DiskTotals totals;
  for (const auto& container : usage.containers) {
    if (parts.writable_layers) add(totals, container.rootfs);
    if (parts.logs) add(totals, container.logs);
  }
  if (!parts.local_volumes) return totals;
  for (const auto& volume : pod.volumes) {
    const auto measured = usage.volumes.find(volume.name);
    if (is_local(volume) && measured != usage.volumes.end()) add(totals, measured->second);
  }
  return totals;
}

}  // namespace evictd::core
