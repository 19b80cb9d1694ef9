#include "admission/eviction_handler.hpp"

#include <string>

#include "admission/taint.hpp"
#include "core/pod.hpp"
#include "core/pressure.hpp"
#include "core/qos.hpp"
#include "core/signal.hpp"

namespace evictd::admission {
namespace {

bool may_run_under_memory_pressure(const core::Pod& pod) {
  return core::qos_class(pod) != core::QosClass::BestEffort ||
         tolerates(pod, {.key = "node.kubernetes.io/memory-pressure", .effect = "NoSchedule"});
}

/// "[DiskPressure MemoryPressure]", the way Go prints a slice.
std::string print(const core::NodeConditions& conditions) {
  std::string text;
  for (const auto condition : conditions) text.append(text.empty() ? "[" : " ").append(name(condition));
  return text + "]";
}

}  // namespace

Verdict EvictionHandler::admit(const Attributes& attributes) {
  const auto& conditions = attributes.node.conditions;
  if (conditions.empty() || core::is_critical(attributes.pod)) return Verdict::admit();
  const bool only_memory = conditions == core::NodeConditions{core::NodeCondition::MemoryPressure};
  if (only_memory && may_run_under_memory_pressure(attributes.pod)) return Verdict::admit();
  return Verdict::reject("Evicted", "The node had condition: " + print(conditions) + ". ");
}

}  // namespace evictd::admission
