#include "core/pod_resources.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "core/quantity.hpp"

namespace evictd::core {
namespace {

constexpr std::string_view hugepages_prefix = "hugepages-";

using Side = ResourceList ResourceRequirements::*;

Quantity amount(const ResourceRequirements& resources, Side side, std::string_view resource) {
  const auto found = (resources.*side).find(resource);
  return found == (resources.*side).end() ? Quantity{} : found->second;
}

/// Containers run together with all sidecars; an ordinary init container runs alone but for the sidecars started before
/// it.
Quantity container_sum(const Pod& pod, Side side, std::string_view resource) {
  Quantity running;
  for (const auto& container : pod.containers) running += amount(container.resources, side, resource);
  Quantity sidecars;
  Quantity largest_init;
  for (const auto& container : pod.init_containers) {
    const auto own = amount(container.resources, side, resource);
    if (container.restart_always) {
      sidecars += own;
      largest_init = std::max(largest_init, sidecars);
    } else {
      largest_init = std::max(largest_init, own + sidecars);
    }
  }
  return std::max(running + sidecars, largest_init);
}

/// Nothing where the pod as a whole does not name it.
std::optional<Quantity> pod_level_amount(const Pod& pod, Side side, std::string_view resource) {
  if (!pod.resources || !is_pod_level_resource(resource) || !((*pod.resources).*side).contains(resource))
    return std::nullopt;
  return amount(*pod.resources, side, resource);
}

/// Requests are those of the pod as a whole or those of its containers. Limits are looked for resource by resource.
Quantity without_overhead(const Pod& pod, Side side, std::string_view resource) {
  if (const auto own = pod_level_amount(pod, side, resource)) return *own;
  const bool is_request = side == &ResourceRequirements::requests;
  return is_request && has_pod_level_resources(pod) ? Quantity{} : container_sum(pod, side, resource);
}

Quantity pod_amount(const Pod& pod, Side side, std::string_view resource) {
  Quantity total;  // a sum even of one: it prints canonically
  total += without_overhead(pod, side, resource);
  if (const auto overhead = pod.overhead.find(resource); !total.is_zero() && overhead != pod.overhead.end())
    total += overhead->second;
  return total;
}

/// The resources that any container names, init containers included.
std::set<std::string, std::less<>> named_by_containers(const Pod& pod, Side side) {
  std::set<std::string, std::less<>> names;
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const auto& container : *containers)
      for (const auto& [resource, quantity] : container.resources.*side) names.insert(resource);
  return names;
}

ResourceList all_amounts(const Pod& pod, Side side) {
  auto names = named_by_containers(pod, side);
  if (pod.resources)
    for (const auto& [resource, quantity] : (*pod.resources).*side)
      if (is_pod_level_resource(resource)) names.insert(resource);
  ResourceList result;
  for (const auto& resource : names) result.emplace(resource, pod_amount(pod, side, resource));
  return result;
}

void default_requests(ResourceRequirements& resources) {
  for (const auto& [resource, limit] : resources.limits) resources.requests.try_emplace(resource, limit);
}

/// Huge pages are not overcommitted: a pod may use as many as its containers may. (kubernetes:
/// defaultHugePagePodLimits)
void default_huge_page_limits(Pod& pod) {
  constexpr auto limits = &ResourceRequirements::limits;
  for (const auto& resource : named_by_containers(pod, limits))
    if (resource.starts_with(hugepages_prefix))
      pod.resources->limits.try_emplace(resource, container_sum(pod, limits, resource));
}

/// What the containers ask for together goes before the limits. (kubernetes: defaultPodRequests)
void default_pod_requests(Pod& pod) {
  auto& [requests, limits] = *pod.resources;
  for (const auto& resource : named_by_containers(pod, &ResourceRequirements::requests))
    if (resource == "cpu" || resource == "memory") requests.try_emplace(resource, containers_request(pod, resource));
  for (const auto& [resource, limit] : limits)
    if (is_pod_level_resource(resource)) requests.try_emplace(resource, limit);
}

}  // namespace

bool is_pod_level_resource(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.starts_with(hugepages_prefix);
}

bool has_pod_level_resources(const Pod& pod) {
  const auto counts = [](const auto& entry) { return is_pod_level_resource(entry.first); };
  return pod.resources &&
         (std::ranges::any_of(pod.resources->requests, counts) || std::ranges::any_of(pod.resources->limits, counts));
}

Quantity containers_request(const Pod& pod, std::string_view resource) {
  return container_sum(pod, &ResourceRequirements::requests, resource);
}

Quantity pod_request(const Pod& pod, std::string_view resource) {
  return pod_amount(pod, &ResourceRequirements::requests, resource);
}

Quantity pod_limit(const Pod& pod, std::string_view resource) {
  return pod_amount(pod, &ResourceRequirements::limits, resource);
}

Quantity container_request(const Container& container, std::string_view resource) {
  return amount(container.resources, &ResourceRequirements::requests, resource);
}

ResourceList pod_requests(const Pod& pod) { return all_amounts(pod, &ResourceRequirements::requests); }
ResourceList pod_limits(const Pod& pod) { return all_amounts(pod, &ResourceRequirements::limits); }

void apply_request_defaults(Pod& pod) {
  for (auto& container : pod.init_containers) default_requests(container.resources);
  for (auto& container : pod.containers) default_requests(container.resources);
  if (!pod.resources || pod.resources->empty()) return;
  default_huge_page_limits(pod);
  if (!pod.resources->limits.empty()) default_pod_requests(pod);
}

}  // namespace evictd::core
