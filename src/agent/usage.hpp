#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/eligibility.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {

using PodUsages = std::vector<std::optional<core::PodUsage>>;

/// What pods use, as passes and evictions ask for it. Lists have one entry for each pod of the list that is given;
/// absent: no stats. All but measure_disk() answer at once. On the reactor.
class Usage {
 public:
  Usage() = default;
  Usage(const Usage&) = delete;
  Usage& operator=(const Usage&) = delete;
  virtual ~Usage() = default;

  /// Working sets as far as they decide who goes (core/deciding_usage.hpp), bounds for the rest. `eligibilities`: one
  /// for each pod.
  [[nodiscard]] virtual PodUsages memory(const core::PodListPtr& pods,
                                         std::span<const core::Eligibility> eligibilities) = 0;
  /// Makes ready for memory() of this list, by what each pod holds now: those that hold the most are looked at first
  /// then. Once for each list at least; memory() does so where nobody did.
  virtual void prepare(const core::PodListPtr& pods) = 0;
  /// What the pods held when memory() of this list was made ready, as bounds: nothing is read. Of one that held little
  /// among very many that may have been four readings ago. Of a pod of which it is unknown: no memory.
  [[nodiscard]] virtual PodUsages memory_as_listed(const core::PodListPtr& pods) = 0;
  [[nodiscard]] virtual PodUsages processes(const core::PodList& pods) = 0;
  /// As measured last. A pod that never was has no stats.
  [[nodiscard]] virtual PodUsages known_disk(const core::PodList& pods) const = 0;
  /// The pods whose usage cannot be measured, because a disk does not answer.
  [[nodiscard]] virtual std::vector<bool> out_of_reach(const core::PodList& pods) const = 0;

  enum class Layers : std::uint8_t {
    told,    ///< as the runtime measured them, up to 10 s ago
    walked,  ///< as they are: who fills a disk within seconds has a layer that the runtime knows nothing of yet
  };
  /// Measures what known_disk() answers. Takes as long as the directories are large, without blocking the reactor, and
  /// ends with what is known by then once that took too long (node::PodDiskSettings::patience).
  [[nodiscard]] virtual boost::asio::awaitable<void> measure_disk(core::PodListPtr pods, Layers layers) = 0;

  /// With the working sets of the pod's containers, for the message that names the greedy ones.
  [[nodiscard]] virtual core::PodUsage with_containers(const core::Pod& pod, core::PodUsage usage) const = 0;
  /// Bytes of memory that the pod's cgroup holds now; 0 where that cannot be read.
  [[nodiscard]] virtual std::int64_t held(std::string_view uid) const = 0;
  /// Bytes of a victim's memory that the kernel will give back by itself (agent/coming_back.hpp); absent: unknown.
  [[nodiscard]] virtual std::optional<std::int64_t> coming_back(const pods::RuntimePod& pod) const = 0;
  /// Bytes of the pod's memory that go with its volumes, not with its processes (agent/coming_back.hpp).
  [[nodiscard]] virtual std::int64_t held_by_tmpfs(std::string_view uid) const = 0;
  /// The tasks of one pod, which the kernel counts: none is listed. Absent: it does not.
  [[nodiscard]] virtual std::optional<std::int64_t> task_count(std::string_view uid) const = 0;
};

}  // namespace evictd::agent
