#include "core/qos.hpp"

#include <algorithm>
#include <array>
#include <optional>
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

/// The memory request in bytes, with what a pod-level request leaves over shared out evenly among all containers.
/// (kubelet: remainingPodMemReqPerContainer)
std::int64_t memory_request_for_oom(const Pod& pod, const Container& container) {
  const auto own = container_request(container, "memory").value();
  if (!pod.resources || !pod.resources->requests.contains("memory")) return own;
  const auto containers = static_cast<std::int64_t>(pod.containers.size() + pod.init_containers.size());
  const auto remainder = pod.resources->requests.at("memory").value() - containers_request(pod, "memory").value();
  return remainder <= 0 || containers == 0 ? own : own + remainder / containers;
}

constexpr int guaranteed_adjust = -997;
constexpr int best_effort_adjust = 1000;
constexpr int burstable_floor = 3;

int burstable_adjust(std::int64_t memory_request, std::int64_t memory_capacity) {
  __extension__ using Wide = __int128;
  const auto adjust = 1000 - static_cast<int>(std::min<Wide>(1000, Wide{1000} * memory_request / memory_capacity));
  if (adjust < burstable_floor) return burstable_floor;
  return adjust == best_effort_adjust ? best_effort_adjust - 1 : adjust;
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

int oom_score_adj(const Pod& pod, const Container& container, std::int64_t memory_capacity) {
  if (is_critical(pod) && pod.priority_class_name == "system-node-critical") return guaranteed_adjust;
  const auto qos = qos_class(pod);
  if (qos == QosClass::Guaranteed) return guaranteed_adjust;
  if (qos == QosClass::BestEffort) return best_effort_adjust;

  const auto adjust = burstable_adjust(memory_request_for_oom(pod, container), memory_capacity);
  if (!container.restart_always || pod.containers.empty()) return adjust;
  // A sidecar goes no sooner than the regular container with the smallest request would.
  const auto smallest = std::ranges::min(
      pod.containers, {}, [&](const Container& regular) { return memory_request_for_oom(pod, regular); });
  return std::min(adjust, burstable_adjust(memory_request_for_oom(pod, smallest), memory_capacity));
}

std::int64_t request_from_oom_score_adj(int oom_score_adj, std::int64_t memory_capacity) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(Wide{best_effort_adjust - oom_score_adj} * memory_capacity / 1000);
}

}  // namespace evictd::core
