#include "core/resize.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/pod_resources.hpp"
#include "core/qos.hpp"
#include "core/quantity.hpp"

namespace evictd::core {
namespace {

constexpr std::array<std::string_view, 2> resizable_resources{"cpu", "memory"};

/// The requests with what was given of cpu and memory; nothing where none was.
ResourceList resized(ResourceList requests, const ResourceList& given) {
  for (const auto resource : resizable_resources) {
    const std::string name(resource);
    const auto found = given.find(resource);
    if (found == given.end())
      requests.erase(name);
    else
      requests.insert_or_assign(name, found->second);
  }
  return requests;
}

/// What an infeasible resize leaves of the spec's requests.
ResourceList not_resizable(const ResourceList& requests) { return resized(requests, {}); }

void raise_to(ResourceList& list, const ResourceList& other) {
  for (const auto& [resource, quantity] : other) {
    auto& own = list.try_emplace(resource, quantity).first->second;
    own = std::max(own, quantity);
  }
}

bool is_no_more(const ResourceList& list, const ResourceList& than) {
  return std::ranges::all_of(list, [&than](const auto& entry) {
    const auto found = than.find(entry.first);
    return entry.second <= (found == than.end() ? Quantity{} : found->second);
  });
}

const GivenRequests* given_to(const Container& container, const ResizeStatus& status) {
  const auto found = status.containers.find(container.name);
  return found == status.containers.end() ? nullptr : &found->second;
}

const ResourceList* allocated_to(const Container& container, const ResizeStatus& status) {
  const auto* given = given_to(container, status);
  return given == nullptr || !given->allocated ? nullptr : &*given->allocated;
}

const ResourceList* actuated_for(const Container& container, const ResizeStatus& status) {
  const auto* given = given_to(container, status);
  const bool is_told = given != nullptr && given->actuated && !given->actuated->empty();
  return is_told ? &*given->actuated : allocated_to(container, status);
}

/// The pod with other requests of its containers.
template <class RequestsOf>
Pod with_container_requests(Pod pod, const RequestsOf& requests_of) {
  for (auto* containers : {&pod.init_containers, &pod.containers})
    for (auto& container : *containers) container.resources.requests = requests_of(container);
  return pod;
}

/// What the containers request together, by resource.
ResourceList container_sums(const Pod& pod) {
  ResourceList sums;
  for (const auto* containers : {&pod.init_containers, &pod.containers})
    for (const auto& container : *containers)
      for (const auto& [resource, quantity] : container.resources.requests) sums.try_emplace(resource);
  for (auto& [resource, sum] : sums) sum = containers_request(pod, resource);
  return sums;
}

/// The sums are compared, not the containers. (component-helpers: AggregateContainerRequests)
ResourceList largest_of_containers(const Pod& spec, const ResizeStatus& status) {
  auto largest = container_sums(spec);
  if (status.infeasible) largest = not_resizable(largest);
  const auto& [allocated, actuated] = status.pod;
  if (allocated && actuated && !actuated->empty()) {  // are sums already
    raise_to(largest, *allocated);
    raise_to(largest, *actuated);
    return largest;
  }
  const auto sums_of = [&](auto given_of) {
    return container_sums(with_container_requests(spec, [&](const Container& container) {
      const auto* given = given_of(container, status);
      if (given != nullptr) return resized(container.resources.requests, *given);
      return status.infeasible ? ResourceList{} : container.resources.requests;
    }));
  };
  raise_to(largest, sums_of(allocated_to));
  raise_to(largest, sums_of(actuated_for));
  return largest;
}

/// What a pod with requests as a whole takes, of whatever of cpu, memory and huge pages is named for it.
/// (component-helpers: effectivePodLevelResources)
ResourceList largest_as_a_whole(const ResourceList& spec, const ResizeStatus& status) {
  const auto& [allocated, actuated] = status.pod;
  if (!actuated) return spec;
  auto largest = status.infeasible ? not_resizable(spec) : spec;
  raise_to(largest, *actuated);
  if (allocated) raise_to(largest, *allocated);
  return largest;
}

ResourceList taken_by(const Pod& spec, const ResizeStatus& status) {
  auto taken = largest_of_containers(spec, status);
  const auto counts = [](const auto& entry) { return is_pod_level_resource(entry.first); };
  if (!spec.resources || std::ranges::none_of(spec.resources->requests, counts)) return taken;
  for (const auto& [resource, quantity] : largest_as_a_whole(spec.resources->requests, status))
    if (is_pod_level_resource(resource)) taken.insert_or_assign(resource, quantity);
  return taken;
}

}  // namespace

void apply_resize(Pod& pod, const ResizeStatus& status) {
  if (status.empty()) return;
  pod.status_qos = qos_class(pod);
  pod.taken = taken_by(pod, status);
  pod = with_container_requests(std::move(pod), [&](const Container& container) {
    const auto* given = allocated_to(container, status);
    return given == nullptr ? container.resources.requests : resized(container.resources.requests, *given);
  });
  if (!pod.resources || !status.pod.allocated) return;
  for (auto& [resource, quantity] : pod.resources->requests)
    if (const auto given = status.pod.allocated->find(resource); given != status.pod.allocated->end())
      quantity = given->second;
}

void allocate_resize(Pod& pod, const Pod& desired) {
  ResizeStatus status;
  for (const auto* containers : {&desired.init_containers, &desired.containers})
    for (const auto& container : *containers)
      status.containers[container.name].allocated = container.resources.requests;
  if (desired.resources)
    status.pod = {.allocated = desired.resources->requests, .actuated = desired.resources->requests};
  const auto before = std::exchange(pod.taken, std::nullopt);
  apply_resize(pod, status);
  if (!pod.taken)
    pod.taken = before;
  else if (before)
    raise_to(*pod.taken, *before);
}

bool raise_to_admitted(Pod& pod, const Pod& admitted) {
  auto taken = pod.taken ? *pod.taken : taken_by(pod, {});
  const auto taken_then = admitted.taken ? *admitted.taken : taken_by(admitted, {});
  if (is_no_more(taken_then, taken) && is_no_more(admitted.overhead, pod.overhead)) return false;
  raise_to(taken, taken_then);
  pod.taken = std::move(taken);
  // Requests as a whole would hide what is asked for a container from now on.
  if (pod.containers.empty()) pod.resources = admitted.resources;
  pod.init_containers = admitted.init_containers;
  pod.containers = admitted.containers;
  raise_to(pod.overhead, admitted.overhead);
  return true;
}

}  // namespace evictd::core
