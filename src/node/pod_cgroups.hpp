#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "node/cgroup.hpp"
#include "node/file_error.hpp"
#include "node/memory_cgroup.hpp"

namespace evictd::node {

/// A pod and its own cgroup, a path below the hierarchy's root ("/kubepods/burstable/podUID"; pods/cgroup_name.hpp
/// finds it). Empty where the pod has none to itself: then it cannot be measured.
struct PodCgroup {
  std::string uid;
  std::string path;
};

/// Memory and processes of the pods, by uid. The memory files stay open between passes, two descriptors a pod, so that
/// ranking a full node costs two preads for each pod and no path lookup.
///
/// Errors of a pod that is not known, has no cgroup yet or no longer are is_gone(): such a pod has no usage.
class PodCgroups {
 public:
  /// The hierarchy must outlive this.
  explicit PodCgroups(const CgroupHierarchy& hierarchy) : hierarchy_(&hierarchy) {}

  /// Makes these the known pods: opens the new ones' files, closes those of pods that are not among them. A cgroup that
  /// is not there yet is looked for again at each reading.
  void sync(std::span<const PodCgroup> pods);

  /// Bytes; of the whole pod with its sandbox, as the kubelet counts it.
  [[nodiscard]] FileResult<std::int64_t> usage(std::string_view uid);
  [[nodiscard]] FileResult<std::int64_t> working_set(std::string_view uid);

  /// Of one cgroup by its path, a container's say; it is opened for this reading alone.
  [[nodiscard]] FileResult<std::int64_t> working_set_of(std::string_view cgroup) const;

  /// See cgroup_processes.hpp.
  [[nodiscard]] FileResult<std::vector<pid_t>> processes(std::string_view uid) const;
  [[nodiscard]] FileResult<std::int64_t> process_count(std::string_view uid) const;
  /// Also true of a pod that is not known.
  [[nodiscard]] FileResult<bool> is_empty_or_gone(std::string_view uid) const;
  [[nodiscard]] FileResult<std::optional<KeptFile>> events(std::string_view uid) const;

  /// The pod's cgroup as a path of the hierarchy, for those who look at it after the pod is forgotten.
  [[nodiscard]] FileResult<std::string> path(std::string_view uid) const;
  [[nodiscard]] std::size_t size() const { return pods_.size(); }

 private:
  struct Pod {
    std::string path;
    std::optional<MemoryCgroup> memory{};
  };

  using Read = FileResult<std::int64_t> (MemoryCgroup::*)() const;
  [[nodiscard]] FileResult<std::int64_t> read(std::string_view uid, Read read);
  [[nodiscard]] FileResult<void> open(Pod& pod) const;

  const CgroupHierarchy* hierarchy_;
  std::map<std::string, Pod, std::less<>> pods_;
};

}  // namespace evictd::node
