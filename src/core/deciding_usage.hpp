#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/pod.hpp"
#include "core/standing.hpp"
#include "core/usage.hpp"

namespace evictd::core {

/// A pod's working set by its place in the list; absent: it cannot be read.
using ReadWorkingSet = std::function<std::optional<std::int64_t>(std::size_t)>;

/// Reads just the working sets that decide which candidate for a memory eviction goes first.
///
/// `at_most[i]`: what the cgroup of `pods[i]` holds, which its working set cannot exceed; absent: no stats. A larger
/// number never puts a pod further back, so once the first by these numbers is one that was read exactly, no other can
/// come before it. All that was not read keeps its bound, marked as such: behind the first, the order is by bounds.
///
/// `standings`: one for each pod. Those that are excluded are not read, those that go last only if there is no
/// candidate.
[[nodiscard]] std::vector<std::optional<PodUsage>> read_deciding_usage(
    const PodList& pods, std::span<const Standing> standings, std::span<const std::optional<std::int64_t>> at_most,
    const ReadWorkingSet& read);

}  // namespace evictd::core
