#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/memory_state.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/allocation/provider.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"

namespace evictd::admission {

/// One pod's way through the nodes' memory. (kubelet: memorymanager's static policy, Allocate)
class MemoryAllocation final : public Allocation {
 public:
  /// `state`: with what the other pods have.
  MemoryAllocation(MemoryState state, const core::Pod& pod);

  [[nodiscard]] ProviderHints pod_hints() const override;
  [[nodiscard]] ProviderHints hints(const Turn& turn) const override;
  [[nodiscard]] std::expected<void, Refusal> allocate(const Turn& turn, const Hint& hint) override;
  void hand_over(PodAllocation& allocation) const override;

 private:
  [[nodiscard]] ProviderHints hints_for(const MemoryAmounts& request) const;
  [[nodiscard]] Result<NumaMask> place(const MemoryAmounts& request, const Hint& wanted) const;
  [[nodiscard]] Result<Hint> extended(NumaMask mask, const MemoryAmounts& request) const;
  [[nodiscard]] MemoryAmounts reusable_on(NumaMask mask) const;
  std::int64_t reuse(const Turn& turn, const MemoryBlock& block);

  MemoryState state_;
  const core::Pod& pod_;
  bool is_served_;
  MemoryState::Reusable reusable_{};  // of init containers that are over, for this pod only
  std::map<std::string, std::vector<MemoryBlock>, std::less<>> given_{};
  std::vector<std::string> over_{};  // init containers that leave theirs to later ones, in order
};

}  // namespace evictd::admission
