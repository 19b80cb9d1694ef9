#include "pods/annotated_spec.hpp"

#include <fmt/format.h>

#include <utility>

#include "pods/manifest.hpp"
#include "pods/manifest_placement.hpp"

namespace evictd::pods {
namespace {

/// A hook is run by evictd, as root and from the node's network: on the word of those in charge of the node only.
void drop_hooks(std::vector<core::Container>& containers) {
  for (auto& container : containers) container.pre_stop.reset();
}

}  // namespace

Result<core::Pod> read_annotated_spec(std::string_view annotation) {
  const auto origin = fmt::format("annotation {}", pod_spec_annotation);
  if (annotation.size() > max_annotated_spec)
    return fail(fmt::format("{}: is larger than {} KiB", origin, max_annotated_spec / 1024));
  auto pod = parse_pod_spec_json(annotation, origin, max_annotated_elements);
  if (!pod) return pod;
  drop_hooks(pod->init_containers);
  drop_hooks(pod->containers);
  return pod;
}

bool apply_annotated_spec(const Result<core::Pod>& read, core::Pod& pod, std::vector<Error>& warnings) {
  if (!read) {
    warnings.push_back(read.error());
    return false;
  }
  const auto& spec = *read;
  if (spec.priority) pod.priority = spec.priority;
  if (!spec.priority_class_name.empty()) pod.priority_class_name = spec.priority_class_name;
  pod.init_containers = spec.init_containers;
  pod.containers = spec.containers;
  pod.resources = spec.resources;
  pod.overhead = spec.overhead;
  pod.volumes = spec.volumes;
  pod.tolerations = spec.tolerations;
  take_placement(pod, spec);
  if (spec.termination_grace_period_seconds)
    pod.termination_grace_period_seconds = spec.termination_grace_period_seconds;
  return true;
}

bool apply_annotated_spec(core::Pod& pod, std::vector<Error>& warnings) {
  const auto annotation = pod.annotations.find(pod_spec_annotation);
  return annotation != pod.annotations.end() &&
         apply_annotated_spec(read_annotated_spec(annotation->second), pod, warnings);
}

}  // namespace evictd::pods
