#include "core/eviction.hpp"

namespace evictd::core {

std::string_view name(const EvictionCause& cause) {
  return std::visit([](const auto& known) { return name(known); }, cause);
}

std::optional<EvictionCause> parse_cause(std::string_view wanted) {
  if (const auto signal = parse_signal(wanted)) return *signal;
  using enum LocalStorageLimit;
  for (const auto limit : {EmptyDir, Pod, Container})
    if (name(limit) == wanted) return limit;
  for (const auto displacement : {Displacement::Preemption, Displacement::NodeShutdown})
    if (name(displacement) == wanted) return displacement;
  return std::nullopt;
}

std::string_view reason(const EvictionCause& cause) {
  const auto* displacement = std::get_if<Displacement>(&cause);
  if (displacement == nullptr) return "Evicted";
  return *displacement == Displacement::Preemption ? "Preempting" : "Terminated";
}

std::optional<std::int64_t> memory_required_at_once(const Eviction& eviction) {
  if (!eviction.acted || eviction.grace_period > Duration::zero()) return std::nullopt;
  const auto& [threshold, observation] = *eviction.acted;
  if (!threshold.is_hard() || !is_memory(threshold.signal)) return std::nullopt;
  return required(threshold, observation.capacity, Enforce::value_only);
}

std::optional<std::string> disruption_message(const Eviction& eviction) {
  if (std::holds_alternative<LocalStorageLimit>(eviction.cause)) return std::nullopt;
  if (eviction.cause == EvictionCause{Displacement::Preemption})
    return "Pod was preempted by Kubelet to accommodate a critical pod.";
  return eviction.message.text;
}

}  // namespace evictd::core
