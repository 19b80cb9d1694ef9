#include "pods/trust.hpp"

#include <algorithm>

#include "core/static_pod.hpp"

namespace evictd::pods {
namespace {

constexpr std::string_view all = "*";
constexpr std::string_view system_class_prefix = "system-";  // reserved (kubernetes: SystemPriorityClassPrefix)

/// That a pod came through the API server makes none critical.
void drop_source(core::Pod& pod) {
  if (core::is_static(pod)) pod.annotations.erase(pod.annotations.find(core::config_source));
}

}  // namespace

bool TrustedNamespaces::contains(std::string_view name_space) const {
  return std::ranges::any_of(names_, [&](const auto& name) { return name == all || name == name_space; });
}

bool has_claims(const core::Pod& listed) {
  return core::is_critical(listed) || listed.priority.value_or(0) > highest_user_priority ||
         listed.priority_class_name.starts_with(system_class_prefix);
}

void drop_claims(core::Pod& listed, const core::Pod* spec, SpecOrigin origin) {
  if (listed.priority) listed.priority = std::min(*listed.priority, highest_user_priority);
  if (listed.priority_class_name.starts_with(system_class_prefix)) listed.priority_class_name.clear();
  if (const auto mirror = listed.annotations.find(core::config_mirror); mirror != listed.annotations.end())
    listed.annotations.erase(mirror);
  if (spec == nullptr || origin != SpecOrigin::Manifests) drop_source(listed);
}

void drop_claims_of_spec(core::Pod& completed, const core::Pod& spec, SpecOrigin origin) {
  if (origin == SpecOrigin::ApiServer && !spec.annotations.contains(core::config_mirror)) drop_source(completed);
}

}  // namespace evictd::pods
