#pragma once
#include <bit>
#include <compare>
#include <cstdint>

#include "admission/pod_allocation.hpp"

namespace evictd::admission {

/// A set of NUMA nodes as bits: node 3 is bit 3. Nodes above 63 are not in any.
class NumaMask {
 public:
  constexpr NumaMask() = default;
  constexpr explicit NumaMask(std::uint64_t bits) : bits_(bits) {}
  explicit NumaMask(const NumaNodes& nodes) {
    for (const int node : nodes) bits_ |= bit(node);
  }
  static constexpr NumaMask of(int node) { return NumaMask{bit(node)}; }

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr int count() const { return std::popcount(bits_); }
  [[nodiscard]] constexpr bool contains(int node) const { return (bits_ & bit(node)) != 0; }
  [[nodiscard]] constexpr bool contains(NumaMask other) const { return (bits_ & other.bits_) == other.bits_; }
  [[nodiscard]] NumaNodes nodes() const {
    NumaNodes result;
    for (auto left = bits_; left != 0; left &= left - 1) result.insert(result.end(), std::countr_zero(left));
    return result;
  }

  friend constexpr NumaMask operator&(NumaMask a, NumaMask b) { return NumaMask{a.bits_ & b.bits_}; }
  friend constexpr NumaMask operator|(NumaMask a, NumaMask b) { return NumaMask{a.bits_ | b.bits_}; }
  /// By value; which of two is narrower is another question.
  friend constexpr auto operator<=>(NumaMask, NumaMask) = default;

 private:
  static constexpr std::uint64_t bit(int node) { return node < 0 || node > 63 ? 0 : std::uint64_t{1} << node; }

  std::uint64_t bits_ = 0;
};

/// Fewer nodes, or as many and lower ones. (kubelet: IsNarrowerThan)
[[nodiscard]] constexpr bool is_narrower(NumaMask a, NumaMask b) {
  return a.count() == b.count() ? a < b : a.count() < b.count();
}

/// Calls `use` with every part of `all` but the empty one, ascending by value: 2^n - 1 of them.
template <class Use>
void for_each_mask(NumaMask all, Use use) {
  for (std::uint64_t part = 0;;) {
    part = (part - all.bits()) & all.bits();
    if (part == 0) return;
    use(NumaMask{part});
  }
}

}  // namespace evictd::admission
