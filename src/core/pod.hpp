#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/node_selector.hpp"
#include "core/pre_stop.hpp"
#include "core/quantity.hpp"

namespace evictd::core {

/// "cpu", "memory", "ephemeral-storage", … -> amount.
using ResourceList = std::map<std::string, Quantity, std::less<>>;

struct ResourceRequirements {
  ResourceList requests;
  ResourceList limits;

  [[nodiscard]] bool empty() const { return requests.empty() && limits.empty(); }
  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

/// A port of the node that a container takes.
struct HostPort {
  std::string ip{};              ///< "": all addresses
  std::string protocol = "TCP";  ///< or "UDP", "SCTP"
  std::int32_t port = 0;         ///< 1 to 65535

  friend bool operator==(const HostPort&, const HostPort&) = default;
};

/// securityContext.appArmorProfile, or what the older annotation says.
struct AppArmorProfile {
  std::string type;                 ///< "RuntimeDefault", "Localhost", "Unconfined"; what else was written stays
  std::string localhost_profile{};  ///< of Localhost

  friend bool operator==(const AppArmorProfile&, const AppArmorProfile&) = default;
};

struct Container {
  std::string name;
  ResourceRequirements resources{};  ///< requests: those allocated, where a status tells them (core/resize.hpp)
  bool restart_always = false;       ///< an init container with restartPolicy Always: a sidecar
  std::vector<HostPort> host_ports{};
  std::optional<AppArmorProfile> app_armor_profile{};
  std::optional<PreStop> pre_stop{};  ///< only by a spec that somebody in charge of the node gives

  friend bool operator==(const Container&, const Container&) = default;
};

/// A volume of the pod's spec, as far as local storage is concerned.
struct Volume {
  enum class Kind : std::uint8_t { EmptyDir, HostPath, ConfigMap, GitRepo, Other };

  std::string name;
  Kind kind = Kind::Other;
  std::string medium{};                  ///< of an emptyDir: "" is the node's disk, "Memory" a tmpfs
  std::optional<Quantity> size_limit{};  ///< of an emptyDir

  friend bool operator==(const Volume&, const Volume&) = default;
};

struct Toleration {
  std::string key;
  std::string op;  ///< "Equal" (also when empty) or "Exists"
  std::string value;
  std::string effect;

  friend bool operator==(const Toleration&, const Toleration&) = default;
};

enum class QosClass : std::uint8_t { BestEffort, Burstable, Guaranteed };
[[nodiscard]] std::string_view name(QosClass qos);

/// What evictd knows of a pod: a Kubernetes v1.Pod reduced to what decides evictions and admission. Where only CRI
/// knows the pod, requests and QoS class are inferred (src/pods).
struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;
  std::map<std::string, std::string, std::less<>> labels{};
  std::map<std::string, std::string, std::less<>> annotations{};

  std::optional<std::int32_t> priority{};  ///< absent counts as 0
  std::string priority_class_name{};
  std::vector<Container> init_containers{};
  std::vector<Container> containers{};
  std::optional<ResourceRequirements> resources{};  ///< pod-level resources, with requests as theirs
  ResourceList overhead{};
  /// What it takes of the node in the eyes of other pods, overhead aside, as a resize in place leaves it; nothing: what
  /// it requests.
  std::optional<ResourceList> taken{};
  std::vector<Volume> volumes{};
  bool volumes_are_claimed = false;  ///< by the pod's own word alone, which hides none that are found on the disk
  std::vector<Toleration> tolerations{};
  std::optional<std::int64_t> termination_grace_period_seconds{};
  std::optional<QosClass> status_qos{};  ///< what the API server or the runtime says; otherwise computed

  // What decides whether it may run on a node.
  std::string node_name{};  ///< spec.nodeName
  std::map<std::string, std::string, std::less<>> node_selector{};
  std::optional<NodeSelector> required_node_affinity{};  ///< requiredDuringSchedulingIgnoredDuringExecution
  std::string os_name{};                                 ///< spec.os.name
  std::vector<HostPort> host_ports{};                    ///< beside its containers': nobody says whose they are
  bool host_network = false;
  bool host_ipc = false;
  bool host_users = true;                              ///< spec.hostUsers: false for a user namespace of its own
  std::vector<std::string> sysctls{};                  ///< their names, as the pod's securityContext writes them
  std::string supplemental_groups_policy{};            ///< "", "Merge" or "Strict"
  std::optional<AppArmorProfile> app_armor_profile{};  ///< for containers without one of their own
  std::string phase{};                                 ///< status.phase; "" counts as Pending
  std::string reason{};                                ///< status.reason: why it is in that phase

  /// "namespace/name", how the pod is named everywhere.
  [[nodiscard]] std::string key() const { return name_space + "/" + name; }

  friend bool operator==(const Pod&, const Pod&) = default;
};

/// Pods are shared, never changed: a pass keeps the list it began with.
using PodPtr = std::shared_ptr<const Pod>;
using PodList = std::vector<PodPtr>;
using PodListPtr = std::shared_ptr<const PodList>;

/// A pod that its kubelet has from a file or a URL: annotation kubernetes.io/config.source other than "api", which the
/// mirror pod has as well. (kubelet: IsStaticPod)
[[nodiscard]] bool is_static(const Pod& pod);

/// A static pod, a mirror pod (kubernetes.io/config.mirror) or a priority of at least 2,000,000,000: never evicted.
/// (kubelet: IsCriticalPod)
[[nodiscard]] bool is_critical(const Pod& pod);

inline constexpr std::int32_t system_critical_priority = 2'000'000'000;

}  // namespace evictd::core
