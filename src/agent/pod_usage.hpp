#pragma once
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/usage.hpp"
#include "core/deciding_usage.hpp"
#include "core/eligibility.hpp"
#include "core/pod.hpp"
#include "core/usage.hpp"
#include "cri/client.hpp"
#include "node/node_memory.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
#include "node/pod_disk.hpp"
#include "pods/cri_pods.hpp"
#include "pods/layer_usage.hpp"
#include "pods/runtime_pod.hpp"

namespace evictd::agent {

/// What pods use, as the passes ask for it: one entry for each pod of the list.
///
/// Memory and processes are read from the cgroups at once. A pod whose cgroup has gone uses nothing; only one that
/// exists and cannot be read has no stats. Disk usage takes the runtime and walks through directories: it is measured
/// in the background, and what is known of it can be had at once.
class PodUsageReader final : public Usage {
 public:
  /// All of these must outlive this.
  struct Parts {
    node::PodCgroups& cgroups;
    const node::NodeMemory& memory;
    node::PodDisk& disk;
    cri::Client& runtime;
    const pods::CriPods& pods;
  };

  explicit PodUsageReader(Parts parts)
      : cgroups_{parts.cgroups}, memory_{parts.memory}, disk_{parts.disk}, runtime_{parts.runtime}, pods_{parts.pods} {}

  /// Makes ready for memory() of this list, and for with_containers() of those who hold much: looks the pods up, and
  /// reads what each holds (2 to 3 µs a pod), so that these are looked at first when it matters.
  void prepare(const core::PodListPtr& pods) override;
  /// The same for a list that may be the one that is prepared: then only those that held the most are read again, and
  /// of the others a quarter each time.
  void prepare_again(const core::PodListPtr& pods);
  [[nodiscard]] bool is_ready_for(const core::PodListPtr& pods) const { return pods == prepared_.pods; }
  /// Working sets as far as they decide who goes (core/deciding_usage.hpp), bounds for the rest. `eligibilities`: one
  /// for each pod. A list that is not prepared is prepared first.
  [[nodiscard]] PodUsages memory(const core::PodListPtr& pods,
                                 std::span<const core::Eligibility> eligibilities) override;
  [[nodiscard]] PodUsages memory_as_listed(const core::PodListPtr& pods) override;
  /// As memory(), with the working sets of all that are among the first `count`.
  [[nodiscard]] PodUsages leading_memory(const core::PodListPtr& pods, std::span<const core::Eligibility> eligibilities,
                                         std::size_t count);
  [[nodiscard]] PodUsages processes(const core::PodList& pods) override;
  /// As measured last. A pod that never was has no stats.
  [[nodiscard]] PodUsages known_disk(const core::PodList& pods) const override;
  /// The pods whose usage cannot be measured, because a disk does not answer (node::PodDisk::is_out_of_reach()).
  [[nodiscard]] std::vector<bool> out_of_reach(const core::PodList& pods) const override;

  [[nodiscard]] boost::asio::awaitable<void> measure_disk(core::PodListPtr pods, Layers layers) override;

  [[nodiscard]] core::PodUsage with_containers(const core::Pod& pod, core::PodUsage usage) const override;
  [[nodiscard]] std::int64_t held(std::string_view uid) const override;
  /// Two preads for each cgroup that is measured, and a look at the processes' list once little is left.
  [[nodiscard]] std::optional<std::int64_t> coming_back(const pods::RuntimePod& pod) const override;
  [[nodiscard]] std::int64_t held_by_tmpfs(std::string_view uid) const override;
  [[nodiscard]] std::optional<std::int64_t> task_count(std::string_view uid) const override;

 private:
  struct Prepared {
    core::PodListPtr pods;
    std::vector<std::shared_ptr<node::PodMemory>> memory;  // one for each pod
    std::vector<std::size_t> order;                        // places in the list
    std::vector<std::optional<std::int64_t>> held;         // bytes, one for each pod; absent: they are not known
    std::size_t always = 0;                                // see core::MemoryReadings
    std::vector<bool> runs;                                // one for each pod: see core::PodUsage
    std::size_t turn = 0;                                  // whose turn it is to be read again
  };
  class Readings;

  [[nodiscard]] std::optional<core::PodUsage> disk_usage(const core::Pod& pod,
                                                         const node::PodDiskReading* reading) const;
  void read_held(std::size_t place);
  void put_in_order();
  [[nodiscard]] bool is_counted(const node::PodMemory& pod) const;
  [[nodiscard]] std::vector<bool> running(const core::PodList& pods) const;
  void tell_whether_complete(const node::PodName& pod);

  node::PodCgroups& cgroups_;
  const node::NodeMemory& memory_;
  node::PodDisk& disk_;
  cri::Client& runtime_;
  const pods::CriPods& pods_;
  pods::LayerUsage layers_;
  Prepared prepared_;
  std::set<std::string, std::less<>> incomplete_;  // uids of pods that were told of
};

}  // namespace evictd::agent
