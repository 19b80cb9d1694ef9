#include "simulate/simulated_allocations.hpp"

#include <boost/json.hpp>
#include <utility>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/number_list.hpp"
#include "admission/pod_allocation.hpp"

namespace json = boost::json;

namespace evictd::simulate {
namespace {

json::object describe(const admission::ContainerAllocation& given) {
  json::object result;
  if (!given.cpus.empty()) result["cpus"] = admission::print_number_list(given.cpus);
  for (const auto& block : given.memory) {
    auto& blocks = result["memory"];
    if (blocks.is_null()) blocks.emplace_array();
    blocks.get_array().push_back({{"numaNodes", admission::print_number_list(block.numa_nodes)},
                                  {"type", block.type},
                                  {"amount", core::Quantity::bytes(block.bytes).to_string()}});
  }
  for (const auto& [resource, ids] : given.devices) {
    auto& devices = result["devices"];
    if (devices.is_null()) devices.emplace_object();
    devices.get_object()[resource] = json::array(ids.begin(), ids.end());
  }
  return result;
}

}  // namespace

SimulatedAllocations::SimulatedAllocations(const admission::AllocationSettings& settings)
    : allocator_{admission::ResourceAllocator::make(settings).value()} {}

void SimulatedAllocations::add(const core::PodList& pods) {
  for (const auto& pod : pods)
    if (auto given = allocator_.allocate(*pod, allocations_); given && !given->empty())
      allocations_.insert_or_assign(pod->uid, *std::move(given));
}

void SimulatedAllocations::remove(const std::string& uid) { allocations_.erase(uid); }

json::object describe(const admission::PodAllocation& allocation) {
  json::object result;
  for (const auto& [container, given] : allocation) result[container] = describe(given);
  return result;
}

}  // namespace evictd::simulate
