#pragma once
#include <boost/json/fwd.hpp>
#include <string>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/allocation/resource_allocator.hpp"
#include "admission/pod_allocation.hpp"
#include "core/pod.hpp"

namespace evictd::simulate {

/// What the pods of a simulated node have for themselves. A pod that comes is given what admission would give it beside
/// those that are there; one that admission would turn away has nothing.
class SimulatedAllocations {
 public:
  /// `settings`: of which a chain can be made.
  explicit SimulatedAllocations(const admission::AllocationSettings& settings);

  void add(const core::PodList& pods);
  void remove(const std::string& uid);
  [[nodiscard]] const admission::Allocations& all() const { return allocations_; }

 private:
  admission::ResourceAllocator allocator_;
  admission::Allocations allocations_;
};

/// Container → "cpus", "memory" and "devices", as far as it is given any.
[[nodiscard]] boost::json::object describe(const admission::PodAllocation& allocation);

}  // namespace evictd::simulate
