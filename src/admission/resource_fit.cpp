#include "admission/resource_fit.hpp"

#include <set>
#include <utility>

#include "core/pod_resources.hpp"
#include "core/quantity.hpp"

namespace evictd::admission {
namespace {

constexpr std::string_view native_prefix = "kubernetes.io/";
constexpr std::string_view hugepages_prefix = "hugepages-";

std::int64_t count(std::string_view resource, const core::Quantity& quantity) {
  return resource == "cpu" ? quantity.milli_value() : quantity.value();
}

std::int64_t with_overhead(const core::Pod& pod, std::string_view resource, core::Quantity total) {
  if (const auto overhead = pod.overhead.find(resource); overhead != pod.overhead.end()) total += overhead->second;
  return count(resource, total);
}

std::int64_t used_by(const core::PodList& pods, std::string_view resource) {
  std::int64_t used = 0;
  for (const auto& pod : pods) used = core::saturating_add(used, taken_request(*pod, resource));
  return used;
}

/// All scalar resources that any part of the pod names.
std::set<std::string, std::less<>> scalar_resources(const core::Pod& pod) {
  std::set<std::string, std::less<>> names;
  const auto collect = [&](const core::ResourceList& list) {
    for (const auto& [resource, quantity] : list)
      if (is_scalar_resource(resource)) names.insert(resource);
  };
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const auto& container : *containers) collect(container.resources.requests);
  if (pod.resources) collect(pod.resources->requests);
  collect(pod.overhead);
  return names;
}

}  // namespace

bool is_extended_resource(std::string_view resource) {
  const bool is_native =
      resource.find('/') == std::string_view::npos || resource.find(native_prefix) != std::string_view::npos;
  return !is_native && !resource.starts_with("requests.");
}

bool is_scalar_resource(std::string_view resource) {
  return is_extended_resource(resource) || resource.starts_with(hugepages_prefix) ||
         resource.find(native_prefix) != std::string_view::npos || resource.starts_with("attachable-volumes-");
}

std::int64_t scheduled_request(const core::Pod& pod, std::string_view resource) {
  auto total = core::containers_request(pod, resource);
  if (pod.resources && core::is_pod_level_resource(resource))
    if (const auto own = pod.resources->requests.find(resource); own != pod.resources->requests.end())
      total = own->second;
  return with_overhead(pod, resource, total);
}

std::int64_t taken_request(const core::Pod& pod, std::string_view resource) {
  if (!pod.taken) return scheduled_request(pod, resource);
  const auto found = pod.taken->find(resource);
  return with_overhead(pod, resource, found == pod.taken->end() ? core::Quantity{} : found->second);
}

core::Pod without_missing_extended_resources(core::Pod pod, const core::ResourceList& allocatable) {
  for (auto* containers : {&pod.init_containers, &pod.containers})
    for (auto& container : *containers)
      std::erase_if(container.resources.requests, [&](const auto& request) {
        return is_extended_resource(request.first) && !allocatable.contains(request.first);
      });
  return pod;
}

std::vector<InsufficientResource> insufficient_resources(const core::Pod& pod, const core::PodList& others,
                                                         const core::ResourceList& allocatable) {
  std::vector<InsufficientResource> result;
  const auto check = [&](std::string_view resource, std::int64_t requested, std::int64_t used) {
    const auto found = allocatable.find(resource);
    const auto capacity = found == allocatable.end() ? 0 : count(resource, found->second);
    if (requested > capacity - used)
      result.push_back({.resource = std::string(resource), .requested = requested, .used = used, .capacity = capacity});
  };
  check("pods", 1, static_cast<std::int64_t>(others.size()));
  const auto check_request = [&](std::string_view resource) {
    const auto requested = scheduled_request(pod, resource);
    if (requested > 0) check(resource, requested, used_by(others, resource));
  };
  for (const std::string_view resource : {"cpu", "memory", "ephemeral-storage"}) check_request(resource);
  for (const auto& resource : scalar_resources(pod)) check_request(resource);
  return result;
}

}  // namespace evictd::admission
