#include "core/pod.hpp"

#include <array>

#include "core/static_pod.hpp"

namespace evictd::core {

std::string_view name(QosClass qos) {
  static constexpr std::array<std::string_view, 3> names{"BestEffort", "Burstable", "Guaranteed"};
  return names[static_cast<std::size_t>(qos)];
}

bool is_static(const Pod& pod) {
  const auto source = pod.annotations.find(config_source);
  return source != pod.annotations.end() && source->second != source_api;
}

bool is_critical(const Pod& pod) {
  return is_static(pod) || pod.annotations.contains(config_mirror) ||
         pod.priority.value_or(0) >= system_critical_priority;
}

}  // namespace evictd::core
