#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "admission/allocation/hint.hpp"
#include "admission/allocation/numa_mask.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// Bytes by kind: "memory", "hugepages-2Mi", …
using MemoryAmounts = std::map<std::string, std::int64_t, std::less<>>;
/// Whether a resource is of such a kind.
[[nodiscard]] inline bool is_memory_kind(std::string_view resource) {
  return resource == "memory" || resource.starts_with("hugepages-");
}

/// How much of every NUMA node's memory is given away, and which nodes are used together. A node serves either
/// containers that need it alone or those of one group of nodes, never both. (kubelet: memorymanager's NUMANodeMap)
class MemoryState {
 public:
  /// What containers can have of each node.
  explicit MemoryState(std::map<int, MemoryAmounts> allocatable);

  /// Counts the block as given; `reused` bytes of it were given before. What a group has is filled up from its lowest
  /// node on. Bytes that are not there are passed over.
  void give(const MemoryBlock& block, std::int64_t reused = 0);

  /// Every mask that could serve the request, preferred where no smaller one would do on an empty machine. `reusable`:
  /// what the pod itself has left by mask. All kinds get the same masks. (kubelet: calculateHints)
  using Reusable = std::map<NumaMask, MemoryAmounts>;
  [[nodiscard]] std::vector<Hint> hints(const MemoryAmounts& request, const Reusable& reusable) const;

  /// Whether the nodes have so much left.
  [[nodiscard]] bool satisfies(NumaMask mask, const MemoryAmounts& request, const MemoryAmounts& reusable) const;
  /// Whether a node of the mask is already used alone or with others.
  [[nodiscard]] bool breaks_group(NumaMask mask) const;

  [[nodiscard]] NumaMask all() const { return all_; }
  /// What is wrong with a block from outside, before it is given; a sentence without the block's owner.
  [[nodiscard]] Result<void> check(const MemoryBlock& block) const;

 private:
  struct Node {
    MemoryAmounts allocatable{};
    MemoryAmounts free{};
    int blocks = 0;
    NumaMask group{};  // with whom it is used, itself included
  };

  std::map<int, Node> nodes_{};
  NumaMask all_{};
};

}  // namespace evictd::admission
