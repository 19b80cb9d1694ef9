#pragma once
#include <filesystem>
#include <string>

#include "core/duration.hpp"
#include "evict/tree_removal.hpp"

namespace evictd::evict {

/// Removes a pod's emptyDirs and what is in them: ROOT/pods/UID/volumes/kubernetes.io~empty-dir/*, where ROOT is the
/// kubelet's directory. What is mounted there is neither emptied nor unmounted, such as one with the medium Memory:
/// that is an error with EXDEV, and the others are removed all the same. A pod without emptyDirs, or without a
/// directory, is no error. For as long as there is time (Removed::out_of_time); a call after that goes on with it.
/// Blocks.
[[nodiscard]] Removed remove_empty_dirs(const std::filesystem::path& kubelet_root, const std::string& uid,
                                        core::Instant give_up);

}  // namespace evictd::evict
