#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"
#include "node/cgroup.hpp"
#include "node/meminfo.hpp"
#include "node/memory_cgroup.hpp"
#include "node/signal_reader.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// What is needed to turn a threshold on a memory signal into a level of the cgroup's usage counter, at which the
/// kernel can wake evictd.
struct MemoryLevelInput {
  std::int64_t capacity = 0;  ///< the signal's, bytes
  std::int64_t usage = 0;     ///< of the cgroup, bytes
  /// The part of the usage that the signal counts as available: inactive_file, or in memAvailable mode what the
  /// kernel's estimate grants.
  std::int64_t reclaimable = 0;
  /// Counts how often the cgroup was opened. Levels armed under another number belong to a cgroup that was removed.
  std::uint64_t incarnation = 0;
  /// In memAvailable mode the estimate follows more than this usage.
  bool follows_usage = true;

  /// The usage at which `threshold` bytes are available, if what grows until then cannot be reclaimed. (kubelet:
  /// UpdateThreshold)
  [[nodiscard]] std::int64_t level(std::int64_t threshold) const { return capacity - threshold + reclaimable; }

  /// The usage below which `threshold` bytes are available whatever the usage consists of. Beyond it the kernel may
  /// take file cache back while the working set grows, and the usage stays as it is. Absent where no usage says that.
  [[nodiscard]] std::optional<std::int64_t> level_without_reclaimable(std::int64_t threshold) const {
    return follows_usage ? std::optional{capacity - threshold} : std::nullopt;
  }

  friend bool operator==(const MemoryLevelInput&, const MemoryLevelInput&) = default;
};

/// The node's memory at one moment.
struct NodeMemoryReading {
  std::int64_t capacity = 0;  ///< the smaller of the machine's memory and the node cgroup's limit
  MemoryReading node{};
  std::optional<MemoryReading> pods{};  ///< absent while there is no pods cgroup
  std::optional<Error> pods_error{};    ///< why an existing pods cgroup could not be read

  /// memory.available; allocatableMemory.available where the pods cgroup has a limit.
  core::Observations observations{};
  MemoryLevelInput node_level{};
  std::optional<MemoryLevelInput> pods_level{};

  /// The usage counter on which a level of the signal lies; null where there is none.
  [[nodiscard]] const MemoryLevelInput* level_input(core::Signal signal) const {
    if (signal == core::Signal::MemoryAvailable) return &node_level;
    return signal == core::Signal::AllocatableMemoryAvailable && pods_level ? &*pods_level : nullptr;
  }
};

/// The pods' cgroup as a path of the hierarchy: "/lab/kubepods".
[[nodiscard]] std::string pods_cgroup(const config::NodeSettings& settings);

/// The memory signals of the node: `node.cgroupRoot` and the pods' cgroup below it.
///
/// The node cgroup must exist to begin with. Either cgroup may vanish later and is opened anew when it is back; without
/// the pods' cgroup its observation is absent, without the node's the reading fails. A read takes 16 µs
/// on an idle node (median of 5000, 2 cores, kernel 6.18), and what the kernel needs to sum up memory.stat on a busy
/// one.
class NodeMemory final : public SignalProbe {
 public:
  /// The hierarchy must outlive this. Errors name the key: `node.cgroupRoot: no cgroup "/lab" in …; create it or
  /// correct the key`.
  [[nodiscard]] static Result<NodeMemory> open(const CgroupHierarchy& hierarchy, const config::NodeSettings& settings);

  /// The cgroups' limits, which change when somebody writes them.
  enum class Limits : std::uint8_t { read, known };

  /// Reads everything anew, but the machine's size only once in 10 s, and limits that are `known` not at all where they
  /// were read before. `now` becomes the time of the observations.
  [[nodiscard]] Result<NodeMemoryReading> read(core::Instant now, Limits limits = Limits::read);

  [[nodiscard]] std::span<const core::Signal> signals() const override;
  /// By the files and the capacity of the last reading: nothing is opened. Absent where the signal has no observation
  /// or the files say nothing any more: read() anew.
  [[nodiscard]] std::optional<std::int64_t> available(core::Signal signal) const override;
  /// All of the usage counted as taken. One pread. Absent in memAvailable mode, too.
  [[nodiscard]] std::optional<std::int64_t> available_at_least(core::Signal signal) const override;

  /// What the pods' cgroup holds now, bytes: all pods below it together. One pread. Absent while there is none.
  [[nodiscard]] std::optional<std::int64_t> pods_usage() const;

  /// The cgroups as paths of the hierarchy: "/lab", "/lab/kubepods".
  [[nodiscard]] const std::string& node_cgroup() const { return node_.path; }
  [[nodiscard]] const std::string& pods_cgroup() const { return pods_.path; }

 private:
  struct Kept {
    std::string path;
    std::optional<MemoryCgroup> files{};
    std::uint64_t incarnation = 0;
    std::optional<std::int64_t> limit{};     // of the last reading; absent: unlimited
    std::optional<std::int64_t> capacity{};  // of the last reading; absent: nothing to be short of
  };

  NodeMemory(const CgroupHierarchy& hierarchy, const config::NodeSettings& settings, os::Directory proc,
             Meminfo machine);
  [[nodiscard]] os::FileResult<MemoryReading> read(Kept& kept, Limits limits) const;
  [[nodiscard]] bool by_estimate(core::Signal signal) const;
  [[nodiscard]] const Kept& kept(core::Signal signal) const;
  [[nodiscard]] os::FileResult<MachineMemory> read_machine(core::Instant now);
  void observe_node(NodeMemoryReading& reading, const MachineMemory& machine, core::Instant now);
  void observe_pods(NodeMemoryReading& reading, Limits limits, core::Instant now);

  const CgroupHierarchy* hierarchy_;
  config::MemoryAvailable mode_;
  os::Directory proc_;
  Meminfo machine_;
  std::optional<MachineMemory> size_{};
  core::Instant size_read_{};
  Kept node_;
  Kept pods_;
};

}  // namespace evictd::node
