#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/node.hpp"
#include "core/pod.hpp"

namespace evictd::config {

/// One entry of shutdownGracePeriodByPodPriority: what pods of at least this priority are given.
struct PriorityGracePeriod {
  std::int32_t priority = 0;
  std::int64_t shutdown_grace_period_seconds = 0;

  friend bool operator==(const PriorityGracePeriod&, const PriorityGracePeriod&) = default;
};

/// One entry of reservedMemory.
struct MemoryReservation {
  std::int32_t numa_node = 0;
  core::ResourceList limits;

  friend bool operator==(const MemoryReservation&, const MemoryReservation&) = default;
};

using PolicyOptions = std::map<std::string, std::string, std::less<>>;

/// The part of a node's KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that evictd goes by. Members are named
/// after their keys and start with the kubelet's defaults; what only the kubelet cares about is not here.
struct KubeletConfiguration {
  /// As it was written; a loaded one passes core::make_policy.
  core::EvictionSettings eviction;
  bool kernel_memcg_notification = false;
  /// How long an image stays after it was first seen. Written as 0 it is the default, as for the kubelet
  /// (SetDefaults_KubeletConfiguration), which takes a negative one as well: no image is too young.
  core::Duration image_minimum_gc_age = std::chrono::minutes(2);

  std::vector<std::string> allowed_unsafe_sysctls;
  std::vector<core::Taint> register_with_taints;

  core::Duration shutdown_grace_period{};  ///< 0: no graceful shutdown
  core::Duration shutdown_grace_period_critical_pods{};
  std::vector<PriorityGracePeriod> shutdown_grace_period_by_pod_priority;

  std::string topology_manager_policy = "none";
  std::string topology_manager_scope = "container";
  PolicyOptions topology_manager_policy_options;
  std::string cpu_manager_policy = "none";
  PolicyOptions cpu_manager_policy_options;
  std::string memory_manager_policy = "None";
  std::vector<MemoryReservation> reserved_memory;
  std::string reserved_system_cpus;  ///< a list of CPUs such as "0-1,8"
  core::ResourceList kube_reserved;
  core::ResourceList system_reserved;

  std::string cgroup_driver = "cgroupfs";
  std::string container_runtime_endpoint = "unix:///run/containerd/containerd.sock";
  std::string pod_logs_dir = "/var/log/pods";
  std::string static_pod_path;  ///< "": no static pods from files
  std::int32_t max_pods = 110;
  std::map<std::string, bool, std::less<>> feature_gates;

  /// Whether the kubelet listens to the runtime's events itself.
  [[nodiscard]] bool evented_pleg() const {
    const auto gate = feature_gates.find("EventedPLEG");
    return gate != feature_gates.end() && gate->second;
  }
};

/// How a document's values come upon those of the documents before it.
enum class Layer : std::uint8_t {
  Replace,   ///< as they stand: the file of --config, which alone has the default thresholds filled in behind it
  Merge,     ///< mappings entry by entry, and null takes an entry or a field away (RFC 7386): a drop-in of --config-dir
  Override,  ///< as they stand: the flags, and what a kubelet answers
};

/// Where a value was written: "/var/lib/kubelet/config.yaml:12" by "evictionHard: memory.available".
using Origins = std::map<std::string, std::string, std::less<>>;

/// A configuration that several documents make, as a kubelet reads them one after the other: later ones win.
class KubeletLayers {
 public:
  /// For a kubelet without a file of --config, which has no default thresholds: what its drop-ins, its flags or its
  /// answer say is all. Before the first add(). (kubelet 1.36: loadConfigFile)
  void without_file() { configuration_.eviction.hard.emplace(); }
  /// Fields of the kubelet that evictd has no use for are passed over; a misspelt eviction field is an error that names
  /// the right one, for it would switch a threshold off in silence.
  [[nodiscard]] Result<void> add(const Value& mapping, Layer layer);
  /// Judges values and their relations; the error names the document that has them.
  [[nodiscard]] Result<KubeletConfiguration> finish() const;
  [[nodiscard]] Origins origins() const;

 private:
  void forget(const std::string& key);
  void remember(const std::string& key, const Value& value, Layer layer);

  KubeletConfiguration configuration_;
  std::map<std::string, Value, std::less<>> lines_;  // by the path with which the core names a key
  std::optional<Value> last_;
};

/// A whole document's mapping, with its header checked. Absent: it is empty.
[[nodiscard]] Result<std::optional<Value>> parse_kubelet_document(std::string_view text, std::string_view origin);

/// Reads the fields from a mapping that has no header of its own, such as the `config` of a scenario, as KubeletLayers
/// does.
[[nodiscard]] Result<KubeletConfiguration> read_kubelet_configuration(const Value& mapping);

/// A whole document. An empty one gives the defaults. Every error names `origin` and the line.
[[nodiscard]] Result<KubeletConfiguration> parse_kubelet_configuration(std::string_view text, std::string_view origin);

/// The keys, but for those of evictions, with other values here and there.
[[nodiscard]] std::vector<std::string> changed_keys(const KubeletConfiguration& before,
                                                    const KubeletConfiguration& after);

[[nodiscard]] Result<KubeletConfiguration> load_kubelet_configuration(const std::filesystem::path& path);

}  // namespace evictd::config
