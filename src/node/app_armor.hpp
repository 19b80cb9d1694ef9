#pragma once
#include <filesystem>

#include "admission/node_snapshot.hpp"

namespace evictd::node {

/// Whether the host's kernel has AppArmor enabled (sys/module/apparmor/parameters/enabled below `root`) and where it is
/// reached (a securityfs in proc/mounts with "apparmor" in it; a missing one is the snapshot's error, in the kubelet's
/// words). `root`: "/". It does not change while the host is up: one look at the start is enough.
[[nodiscard]] admission::AppArmorSupport read_app_armor(const std::filesystem::path& root);

}  // namespace evictd::node
