#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/pod.hpp"
#include "testbed/pod_cgroups.hpp"

namespace testbed {

/// A cgroup that stands for a node, with the cgroups the kubelet makes below it: kubepods, and burstable and besteffort
/// in there. It exists in the memory and in the pids hierarchy. What runs in it is killed and the cgroups are removed
/// with this object.
class NodeCgroup final : public PodCgroups {
 public:
  struct Options {
    std::optional<std::int64_t> memory_limit{};  ///< bytes: the node's capacity; otherwise it is the machine's
    std::optional<std::int64_t> pids_limit{};
  };

  /// Removes first what killed testbeds left.
  explicit NodeCgroup(const Options& options);
  NodeCgroup(const NodeCgroup&) = delete;
  NodeCgroup& operator=(const NodeCgroup&) = delete;
  ~NodeCgroup();

  /// "/evictd-test-4026531836-12-1": the node's cgroup as evictd's node.cgroupRoot names it, relative to a hierarchy's
  /// root.
  [[nodiscard]] const std::string& cgroup() const { return cgroup_; }
  /// Where a pod belongs: ".../kubepods/burstable/podUID", and for a Guaranteed one ".../kubepods/podUID".
  [[nodiscard]] std::string pod_cgroup(evictd::core::QosClass qos, std::string_view uid) const override;

  /// The directory of a cgroup ("/evictd-test-4026531836-12-1/kubepods") in the memory hierarchy, in that of pids; of
  /// the node's own without argument.
  [[nodiscard]] std::filesystem::path memory_directory(std::string_view cgroup) const;
  [[nodiscard]] std::filesystem::path memory_directory() const { return memory_directory(cgroup_); }
  [[nodiscard]] std::filesystem::path pids_directory(std::string_view cgroup) const;
  [[nodiscard]] std::filesystem::path pids_directory() const { return pids_directory(cgroup_); }

  /// Bytes, page cache included: memory.usage_in_bytes, memory.current.
  [[nodiscard]] std::int64_t memory_usage(std::string_view cgroup) const;
  [[nodiscard]] std::int64_t memory_usage() const { return memory_usage(cgroup_); }
  /// A row of memory.stat, such as "inactive_file", of the cgroup and what is below it; 0 if there is none.
  [[nodiscard]] std::int64_t memory_stat(std::string_view cgroup, std::string_view row) const;
  [[nodiscard]] std::int64_t memory_stat(std::string_view row) const { return memory_stat(cgroup_, row); }
  /// Bytes: the smaller of the limit and the machine's memory.
  [[nodiscard]] std::int64_t memory_capacity() const override { return memory_capacity_; }
  [[nodiscard]] std::vector<pid_t> processes(std::string_view cgroup) const override;

  /// Makes a cgroup of the node's in both hierarchies, for others below it.
  void make(std::string_view cgroup) const;

 private:
  /// Makes none yet. What a constructor makes after it, the destructor removes where the constructor fails.
  NodeCgroup();

  std::string cgroup_;
  std::int64_t memory_capacity_;
};

}  // namespace testbed
