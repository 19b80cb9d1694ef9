#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/eviction_message.hpp"
#include "core/signal.hpp"
#include "kube/wall_time.hpp"

namespace evictd::kube {

/// What the cluster is to learn of a pod that was evicted, or had to end for another reason.
struct Eviction {
  std::string name_space;
  std::string name;
  std::string uid;                       ///< as the container runtime knows it
  std::uint64_t id = 0;                  ///< of the eviction: no other one of this pod has it, over restarts
  std::optional<std::string> api_uid{};  ///< of the API object, where a source gave it; it differs for static pods
  /// Of a static pod its hash (annotation kubernetes.io/config.hash): the API object is a mirror, with a uid of its own
  /// and this hash in kubernetes.io/config.mirror. Empty: the pod is not static.
  std::string static_hash{};
  core::EvictionMessage message;
  /// What DisruptionTarget says. Absent where the pod was not disrupted: it exceeded a limit of its own.
  std::optional<std::string> disruption{};
  /// Of the pod's status and of the Event: "Evicted", "Preempting", "Terminated" (the node shuts down).
  std::string reason = "Evicted";
  bool has_event = true;  ///< false: the kubelet makes no Event of this either
  WallTime time;          ///< when its containers were dead
};

/// Namespace and name can name an API object, and there is a uid to hold on to. Pods that were made by CRI alone
/// may be called anything.
[[nodiscard]] bool can_be_api_pod(const Eviction& eviction);

/// "/api/v1/namespaces/NS/pods/NAME"
[[nodiscard]] std::string pod_target(const Eviction& eviction);
/// "/api/v1/namespaces/NS/events"
[[nodiscard]] std::string events_target(std::string_view name_space);

/// A strategic merge patch of pods/NAME/status: Failed, reason and message, and the conditions that newer
/// kubelets set: Ready and ContainersReady are False with reason PodFailed, so that a disruption budget does not
/// count a dead pod as healthy; DisruptionTarget is True with reason TerminationByKubelet unless the pod went for a
/// limit of its own, by which Jobs tell the others from failures of their own (KEP-3329). The container statuses are
/// left to the kubelet. With metadata.uid in it the API server applies it to no other pod of that name. The same
/// eviction gives the same bytes: applied twice, it changes nothing.
[[nodiscard]] std::string eviction_status_patch(const Eviction& eviction, std::string_view api_uid);

/// Whether a pod's phase and reason are what that patch makes of them.
[[nodiscard]] bool is_told(const Eviction& eviction, std::string_view phase, std::string_view reason);

/// DeleteOptions: at once, and no other pod of that name.
[[nodiscard]] std::string delete_options(std::string_view api_uid);

/// An Event on the pod with the eviction's reason, word for word and with the annotations of the kubelet's. Its name
/// follows from reason, uid and the eviction's id: made twice, it is there once, and another eviction of the same pod
/// has another one.
[[nodiscard]] std::string eviction_event(const Eviction& eviction, std::string_view api_uid, std::string_view node);

/// Thresholds met lately, for one resource.
struct ThresholdMet {
  std::string_view resource;  ///< of a signal's row
  WallTime first;
  WallTime last;
  std::int64_t count = 1;
};
/// An Event `EvictionThresholdMet` on the node, in the namespace "default". The node's uid is its name, as in the
/// kubelet's events: by that `kubectl describe node` finds them.
[[nodiscard]] std::string threshold_event(const ThresholdMet& met, std::string_view node);

/// Whether the machine goes down, as it became known.
struct NodeShutdown {
  bool pending = false;  ///< false: it does not, or not any more
  /// When the shutdown in question began; absent: there was none, and no Event tells of it.
  std::optional<core::Instant> begun{};
};
/// An Event `NodeShutdown` on the node as after threshold_event(), in the kubelet's words (kubelet
/// nodeshutdown_manager_linux.go). Its name follows from `begun` and `pending`: a shutdown that two evictds tell of,
/// one after the other, is there once.
[[nodiscard]] std::string shutdown_event(const NodeShutdown& shutdown, WallTime time, std::string_view node);

/// A pod read from the API server, as far as a report needs it.
struct PodObject {
  std::string uid;
  std::string mirror_of{};  ///< the hash of the static pod that it mirrors; empty: it is no mirror
  std::string phase{};      ///< status.phase
  std::string reason{};     ///< status.reason
  bool deleted = false;     ///< it was deleted, and is there until its kubelet has ended it
};
/// Error: no JSON object, or one without a uid.
[[nodiscard]] Result<PodObject> parse_pod_object(std::string_view body);

}  // namespace evictd::kube
