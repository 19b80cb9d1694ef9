#include "admission/node_reservation.hpp"

#include <string_view>

#include "core/quantity.hpp"
#include "core/signal.hpp"

namespace evictd::admission {
namespace {

using core::Quantity;
using core::ResourceList;

/// What evictionHard keeps free of a resource: a soft threshold may have no grace period, and keeps nothing free all
/// the same. The last one of a signal counts.
Quantity kept_free(std::span<const core::Threshold> thresholds, std::string_view resource, const Quantity& capacity) {
  Quantity result;
  for (const auto& threshold : thresholds) {
    const bool is_memory = resource == "memory" && threshold.signal == core::Signal::MemoryAvailable;
    const bool is_disk = resource == "ephemeral-storage" && threshold.signal == core::Signal::NodefsAvailable;
    const bool is_soft = threshold.source == core::ThresholdSource::EvictionSoft || !threshold.is_hard();
    if (!is_soft && (is_memory || is_disk)) result = Quantity::bytes(threshold.value.of(capacity.value()));
  }
  return result;
}

}  // namespace

ResourceList node_reservation(const ResourceList& capacity, const ResourceList& kube_reserved,
                              const ResourceList& system_reserved, std::span<const core::Threshold> thresholds) {
  ResourceList result;
  for (const auto& [resource, amount] : capacity) {
    auto total = kept_free(thresholds, resource, amount);
    for (const auto* reserved : {&kube_reserved, &system_reserved})
      if (const auto found = reserved->find(resource); found != reserved->end()) total += found->second;
    if (!total.is_zero()) result.emplace(resource, total);
  }
  return result;
}

}  // namespace evictd::admission
