#include "pods/annotated_spec.hpp"

#include <string>
#include <utility>

#include "pods/manifest.hpp"
#include "pods/manifest_placement.hpp"

namespace evictd::pods {

bool apply_annotated_spec(core::Pod& pod, std::vector<Error>& warnings) {
  const auto annotation = pod.annotations.find(pod_spec_annotation);
  if (annotation == pod.annotations.end()) return false;
  const auto whole = "{\"metadata\": {\"name\": \"pod\"}, \"spec\": " + annotation->second + "}";
  auto parsed = parse_pods(whole, "annotation " + std::string(pod_spec_annotation));
  if (!parsed || parsed->size() != 1) {
    warnings.push_back(parsed ? Error{"annotation " + std::string(pod_spec_annotation) + ": not one pod's spec"}
                              : parsed.error());
    return false;
  }
  auto& spec = parsed->front();
  if (spec.priority) pod.priority = spec.priority;
  if (!spec.priority_class_name.empty()) pod.priority_class_name = std::move(spec.priority_class_name);
  pod.init_containers = std::move(spec.init_containers);
  pod.containers = std::move(spec.containers);
  pod.resources = std::move(spec.resources);
  pod.overhead = std::move(spec.overhead);
  pod.volumes = std::move(spec.volumes);
  pod.tolerations = std::move(spec.tolerations);
  take_placement(pod, spec);
  if (spec.termination_grace_period_seconds)
    pod.termination_grace_period_seconds = spec.termination_grace_period_seconds;
  return true;
}

}  // namespace evictd::pods
