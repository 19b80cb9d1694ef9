#include "evict/pod_volumes.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "os/beneath.hpp"
#include "os/directory.hpp"

namespace evictd::evict {

Removed remove_empty_dirs(const std::filesystem::path& kubelet_root, const std::string& uid, core::Instant give_up) {
  Removed removed;
  const auto below = fmt::format("{}/volumes/kubernetes.io~empty-dir", uid);
  const auto path = fmt::format("{}/pods/{}", kubelet_root.native(), below);
  const auto pods = os::Directory::open(kubelet_root / "pods");
  if (!os::is_one_name(uid)) {
    removed.error = os::system_error(EINVAL, path);
    return removed;
  }
  if (!pods) {
    if (!pods.error().is_gone()) removed.error = pods.error();
    return removed;
  }
  const auto volumes = open_for_removal(pods->descriptor(), below, path);
  if (volumes)
    TreeRemoval{removed, give_up}.clear(volumes->get(), path);
  else if (!volumes.error().is_gone())
    removed.error = volumes.error();
  return removed;
}

}  // namespace evictd::evict
