#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/cgroup.hpp"
#include "node/memory_cgroup.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::node {

/// A pod and its own cgroup, a path below the hierarchy's root ("/kubepods/burstable/podUID"; pods/cgroup_name.hpp
/// finds it). Empty where the pod has none to itself, or where it is not known: then the pod's containers, whose
/// cgroups are `containers`, are measured in its place.
struct PodCgroup {
  std::string uid;
  std::string path;
  std::vector<std::string> containers{};
};

/// The memory of one pod's cgroup, or of its containers' together, and of each container. The files are opened when
/// they are first asked for and stay open, two descriptors each.
///
/// Errors of a pod that has no cgroup yet or no longer are is_gone(): such a pod has no usage.
class PodMemory {
 public:
  /// The hierarchy must outlive this.
  PodMemory(const CgroupHierarchy& hierarchy, const PodCgroup& pod);

  /// Bytes; of the whole pod with its sandbox, as the kubelet counts it.
  [[nodiscard]] os::FileResult<std::int64_t> usage() { return sum(&MemoryCgroup::usage); }
  [[nodiscard]] os::FileResult<std::int64_t> working_set() { return sum(&MemoryCgroup::working_set); }
  [[nodiscard]] os::FileResult<ProcessMemory> process_memory() { return sum(&MemoryCgroup::process_memory); }
  [[nodiscard]] os::FileResult<void> open();

  /// Of one container, by its cgroup.
  [[nodiscard]] os::FileResult<std::int64_t> working_set_of(std::string_view container);
  /// The cgroup of the container that holds the most; empty: there is none. One pread for each where there are several,
  /// and opening and closing a file where it is not open.
  [[nodiscard]] std::string largest_container();
  /// Makes ready for both questions about `most` of the containers, so that these cost no path lookup, and lets go of
  /// the others. How many are ready: two descriptors each.
  std::size_t keep_containers_open(std::size_t most);

  /// The pod's own; may be empty.
  [[nodiscard]] const std::string& path() const { return own_.path; }
  /// The containers may be others later on.
  void set_containers(const std::vector<std::string>& cgroups);
  /// The tasks of the cgroups that are measured.
  [[nodiscard]] os::FileResult<std::int64_t> process_count();

 private:
  struct Part {
    std::string path;
    std::optional<MemoryCgroup> files{};
  };
  [[nodiscard]] os::FileResult<void> open(Part& part) const;
  template <class Number>
  [[nodiscard]] os::FileResult<Number> read(Part& part, os::FileResult<Number> (MemoryCgroup::*read)() const) const;
  template <class Number>
  [[nodiscard]] os::FileResult<Number> sum(os::FileResult<Number> (MemoryCgroup::*read)() const);

  /// What stands for the pod.
  [[nodiscard]] std::span<Part> measured() { return path().empty() ? std::span{containers_} : std::span{&own_, 1}; }

  const CgroupHierarchy* hierarchy_;
  Part own_;
  std::vector<Part> containers_;
};

/// Memory and processes of the pods, by uid. The memory files stay open between passes, two descriptors a pod, so that
/// ranking a full node costs two preads for each pod and no path lookup.
///
/// Errors of a pod that is not known, has no cgroup yet or no longer are is_gone(): such a pod has no usage.
class PodCgroups {
 public:
  /// The hierarchy must outlive this.
  explicit PodCgroups(const CgroupHierarchy& hierarchy) : hierarchy_(&hierarchy) {}

  /// Makes these the known pods: add(), and closes the files of pods that are not among them.
  void sync(std::span<const PodCgroup> pods);
  /// Adds these to the known pods, and opens the files of those that were not: some 10 to 20 µs each. A cgroup that is
  /// not there yet is looked for again at each reading.
  void add(std::span<const PodCgroup> pods);
  [[nodiscard]] bool knows(const PodCgroup& pod) const;

  /// See PodMemory.
  [[nodiscard]] os::FileResult<std::int64_t> usage(std::string_view uid);
  [[nodiscard]] os::FileResult<std::int64_t> working_set(std::string_view uid);
  [[nodiscard]] os::FileResult<ProcessMemory> process_memory(std::string_view uid);
  /// For those who read it again and again without looking it up. Null for a pod that is not known.
  [[nodiscard]] std::shared_ptr<PodMemory> memory(std::string_view uid) const;

  /// See PodMemory. Empty for a pod that is not known.
  [[nodiscard]] std::string largest_container(std::string_view uid) const;

  /// Of one cgroup by its path, which is opened for this reading alone.
  [[nodiscard]] os::FileResult<std::int64_t> working_set_of(std::string_view cgroup) const;

  /// See cgroup_processes.hpp.
  [[nodiscard]] os::FileResult<std::vector<pid_t>> processes(std::string_view uid) const;
  [[nodiscard]] os::FileResult<std::int64_t> process_count(std::string_view uid) const;
  [[nodiscard]] os::FileResult<std::int64_t> task_count(std::string_view uid) const;
  /// Also true of a pod that is not known.
  [[nodiscard]] os::FileResult<bool> is_empty_or_gone(std::string_view uid) const;
  /// Of one cgroup by its path.
  [[nodiscard]] os::FileResult<bool> is_cgroup_empty_or_gone(std::string_view cgroup) const;
  [[nodiscard]] os::FileResult<std::optional<os::KeptFile>> events(std::string_view uid) const;

  /// The pod's cgroup as a path of the hierarchy, for those who look at it after the pod is forgotten.
  [[nodiscard]] os::FileResult<std::string> path(std::string_view uid) const;
  [[nodiscard]] std::size_t size() const { return pods_.size(); }

 private:
  const CgroupHierarchy* hierarchy_;
  std::map<std::string, std::shared_ptr<PodMemory>, std::less<>> pods_;
};

}  // namespace evictd::node
