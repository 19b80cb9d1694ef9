#include "core/eviction.hpp"

#include <array>

namespace evictd::core {
namespace {

constexpr std::array storage_limits{LocalStorageLimit::EmptyDir, LocalStorageLimit::Pod, LocalStorageLimit::Container};
constexpr std::array displacements{Displacement::Preemption, Displacement::NodeShutdown};

}  // namespace

std::string_view name(const EvictionCause& cause) {
  return std::visit([](const auto& known) { return name(known); }, cause);
}

std::vector<std::string_view> cause_names() {
  auto names = signal_names();
  for (const auto limit : storage_limits) names.push_back(name(limit));
  for (const auto displacement : displacements) names.push_back(name(displacement));
  return names;
}

std::optional<EvictionCause> parse_cause(std::string_view wanted) {
  if (const auto signal = parse_signal(wanted)) return *signal;
  for (const auto limit : storage_limits)
    if (name(limit) == wanted) return limit;
  for (const auto displacement : displacements)
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
