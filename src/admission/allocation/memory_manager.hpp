#pragma once
#include <map>
#include <memory>
#include <string>

#include "admission/allocation/allocation_settings.hpp"
#include "admission/allocation/memory_state.hpp"
#include "admission/allocation/provider.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// memoryManagerPolicy Static: the memory and huge pages that a container of a Guaranteed pod requests are kept for it
/// on as few NUMA nodes as can be. Pods with pod-level resources get none.
class MemoryManager final : public ResourceProvider {
 public:
  /// Nothing (a null pointer) with the policy None. An error is what keeps the kubelet from starting: reservedMemory
  /// must be all that `reserved` keeps back, kind by kind, and some memory must be kept back. It begins with the key
  /// that is at fault.
  [[nodiscard]] static Result<std::unique_ptr<MemoryManager>> make(const AllocationSettings& settings);

  [[nodiscard]] std::unique_ptr<Allocation> begin(const core::Pod& pod, const Allocations& others) const override;
  [[nodiscard]] Result<void> check(const Allocations& allocations) const override;
  [[nodiscard]] std::map<std::string, std::string, std::less<>> basis() const override;

  /// Bytes that containers can have of each NUMA node: without what is reserved, of plain memory also without what is
  /// set aside for huge pages.
  [[nodiscard]] const std::map<int, MemoryAmounts>& allocatable() const { return allocatable_; }

 private:
  MemoryManager() = default;

  std::map<int, MemoryAmounts> allocatable_{};
  std::map<std::string, std::string, std::less<>> basis_{};
};

}  // namespace evictd::admission
