#include "admission/resize_handler.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/pod.hpp"
#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"

namespace evictd::admission {
namespace {

Verdict infeasible(std::string message) { return Verdict::reject(infeasible_resize, std::move(message)); }

core::Quantity allocated_request(const core::Pod* allocated, const std::string& name, std::string_view resource) {
  if (allocated == nullptr) return {};
  for (const auto* containers : {&allocated->init_containers, &allocated->containers})
    if (const auto found = std::ranges::find(*containers, name, &core::Container::name); found != containers->end())
      return core::container_request(*found, resource);
  return {};
}

/// Init containers that are no sidecars have ended. A Guaranteed pod's requests are its limits, too. (kubelet:
/// guaranteedPodResourceResizeRequired)
bool changes_requests(const core::Pod& pod, const core::Pod* allocated, std::string_view resource) {
  const auto changes = [&](const core::Container& container) {
    return core::container_request(container, resource) != allocated_request(allocated, container.name, resource);
  };
  const auto changes_sidecar = [&](const core::Container& container) {
    return container.restart_always && changes(container);
  };
  return std::ranges::any_of(pod.containers, changes) || std::ranges::any_of(pod.init_containers, changes_sidecar);
}

/// "memory, requested: 2, capacity: 1" where the node could never give as much; otherwise "". CPU is counted in
/// thousandths.
std::string beyond(const core::Pod& pod, const core::ResourceList& allocatable, std::string_view resource) {
  const auto count = [&](const core::Quantity& amount) {
    return resource == "cpu" ? amount.milli_value() : amount.value();
  };
  const auto found = allocatable.find(resource);
  const std::int64_t capacity = found == allocatable.end() ? 0 : count(found->second);
  const std::int64_t requested = count(core::pod_request(pod, resource));
  if (requested <= capacity) return {};
  return std::string(resource) + ", requested: " + std::to_string(requested) +
         ", capacity: " + std::to_string(capacity);
}

}  // namespace

Verdict ResizeHandler::admit(const Attributes& attributes) {
  const auto& pod = attributes.pod;
  const auto* allocated = attributes.allocated;
  // Who asks may have left its annotations out.
  if (core::is_static(pod) || (allocated != nullptr && core::is_static(*allocated)))
    return infeasible("In-place resize of static-pods is not supported");
  if (core::qos_class(pod) == core::QosClass::Guaranteed) {
    if (static_cpus_ && changes_requests(pod, allocated, "cpu"))
      return infeasible("Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\"");
    if (static_memory_ && changes_requests(pod, allocated, "memory"))
      return infeasible("Resize is infeasible for Guaranteed Pods alongside Memory Manager policy \"Static\"");
  }
  const auto& node = attributes.node.node;
  if (!node) return Verdict::admit();  // which the predicates tell
  for (const std::string_view resource : {"memory", "cpu"})
    if (const auto lack = beyond(pod, node->allocatable, resource); !lack.empty())
      return infeasible("Node didn't have enough capacity: " + lack);
  return Verdict::admit();
}

}  // namespace evictd::admission
