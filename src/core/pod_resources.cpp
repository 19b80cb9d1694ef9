#include "core/pod_resources.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "core/quantity.hpp"

namespace evictd::core {
namespace {

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

Quantity pod_amount(const Pod& pod, Side side, std::string_view resource) {
  const bool pod_level = pod.resources && ((*pod.resources).*side).contains(resource);
  Quantity total;  // a sum even of one: it prints canonically
  total += pod_level ? amount(*pod.resources, side, resource) : container_sum(pod, side, resource);
  if (const auto overhead = pod.overhead.find(resource); !total.is_zero() && overhead != pod.overhead.end())
    total += overhead->second;
  return total;
}

ResourceList all_amounts(const Pod& pod, Side side) {
  std::set<std::string, std::less<>> names;
  const auto collect = [&](const ResourceRequirements& resources) {
    for (const auto& [resource, quantity] : resources.*side) names.insert(resource);
  };
  for (const auto& container : pod.init_containers) collect(container.resources);
  for (const auto& container : pod.containers) collect(container.resources);
  if (pod.resources) collect(*pod.resources);
  ResourceList result;
  for (const auto& resource : names) result.emplace(resource, pod_amount(pod, side, resource));
  return result;
}

void default_requests(ResourceRequirements& resources) {
  for (const auto& [resource, limit] : resources.limits) resources.requests.try_emplace(resource, limit);
}

/// With pod-level limits, what the containers ask for together goes before the limits. (kubernetes: defaultPodRequests)
void default_pod_requests(Pod& pod) {
  for (const std::string_view resource : {"cpu", "memory"})
    if (const auto sum = containers_request(pod, resource); !sum.is_zero())
      pod.resources->requests.try_emplace(std::string(resource), sum);
  default_requests(*pod.resources);
}

}  // namespace

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
  if (pod.resources && !pod.resources->limits.empty()) default_pod_requests(pod);
}

}  // namespace evictd::core
