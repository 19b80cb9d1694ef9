#include "core/qos.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>

#include "core/pod_resources.hpp"
#include "core/quantity.hpp"

namespace evictd::core {
namespace {

constexpr std::array<std::string_view, 2> qos_resources{"cpu", "memory"};

std::optional<Quantity> positive(const ResourceList& list, std::string_view resource) {
  const auto found = list.find(resource);
  if (found == list.end() || found->second <= Quantity{}) return std::nullopt;
  return found->second;
}

/// The class one container would have alone; the pod's follows from all of them.
QosClass qos_of(const ResourceRequirements& resources) {
  bool any = false;
  bool guaranteed = true;
  for (const auto resource : qos_resources) {
    const auto request = positive(resources.requests, resource);
    const auto limit = positive(resources.limits, resource);
    any = any || request || limit;
    guaranteed = guaranteed && limit && request && *request == *limit;
  }
  if (!any) return QosClass::BestEffort;
  return guaranteed ? QosClass::Guaranteed : QosClass::Burstable;
}

/// The bytes that a pod-level request leaves over for each container, init containers included. (kubelet:
/// remainingPodMemReqPerContainer)
std::int64_t share_of_pod_request(const Pod& pod) {
  if (!pod.resources || !pod.resources->requests.contains("memory")) return 0;
  const auto containers = static_cast<std::int64_t>(pod.containers.size() + pod.init_containers.size());
  const auto remainder = pod.resources->requests.at("memory").value() - containers_request(pod, "memory").value();
  return remainder <= 0 || containers == 0 ? 0 : remainder / containers;
}

std::int64_t own_memory_request(const Container& container) { return container_request(container, "memory").value(); }

constexpr int guaranteed_adjust = -997;
constexpr int best_effort_adjust = 1000;
constexpr int burstable_floor = 3;

int burstable_adjust(std::int64_t memory_request, std::int64_t memory_capacity) {
  __extension__ using Wide = __int128;
  const auto adjust = 1000 - static_cast<int>(std::min<Wide>(1000, Wide{1000} * memory_request / memory_capacity));
  if (adjust < burstable_floor) return burstable_floor;
  return adjust == best_effort_adjust ? best_effort_adjust - 1 : adjust;
}

/// Of a pod whose containers all have the same, whatever they request.
std::optional<int> common_adjust(const Pod& pod) {
  if (is_critical(pod) && pod.priority_class_name == "system-node-critical") return guaranteed_adjust;
  const auto qos = qos_class(pod);
  if (qos == QosClass::Guaranteed) return guaranteed_adjust;
  if (qos == QosClass::BestEffort) return best_effort_adjust;
  return std::nullopt;
}

}  // namespace

QosClass qos_class(const Pod& pod) {
  if (pod.status_qos) return *pod.status_qos;
  if (pod.resources) return qos_of(*pod.resources);
  std::optional<QosClass> result;
  for (const auto* containers : {&pod.init_containers, &pod.containers}) {
    for (const auto& container : *containers) {
      const auto qos = qos_of(container.resources);
      if (result && *result != qos) return QosClass::Burstable;
      result = qos;
    }
  }
  return result.value_or(QosClass::BestEffort);
}

OomScoreAdj::OomScoreAdj(const Pod& pod, std::int64_t memory_capacity)
    : capacity_{memory_capacity}, of_all_{common_adjust(pod)} {
  if (of_all_) return;
  share_ = share_of_pod_request(pod);
  if (pod.containers.empty()) return;
  // A sidecar goes no sooner than the regular container with the smallest request would.
  const auto smallest = std::ranges::min(pod.containers | std::views::transform(own_memory_request));
  sidecar_most_ = burstable_adjust(smallest + share_, capacity_);
}

int OomScoreAdj::of(const Container& container) const {
  if (of_all_) return *of_all_;
  const auto adjust = burstable_adjust(own_memory_request(container) + share_, capacity_);
  return container.restart_always && sidecar_most_ ? std::min(adjust, *sidecar_most_) : adjust;
}

int oom_score_adj(const Pod& pod, const Container& container, std::int64_t memory_capacity) {
  return OomScoreAdj(pod, memory_capacity).of(container);
}

std::int64_t request_from_oom_score_adj(int oom_score_adj, std::int64_t memory_capacity) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(Wide{best_effort_adjust - oom_score_adj} * memory_capacity / 1000);
}

}  // namespace evictd::core
