#pragma once
#include <set>
#include <string>
#include <string_view>

#include "admission/allocation/resource_allocator.hpp"
#include "admission/pod_allocation.hpp"
#include "core/error.hpp"

namespace evictd::node {

/// What pods have, and what that rests upon.
struct KeptAllocations {
  admission::ResourceAllocator::Basis basis{};
  admission::Allocations allocations{};
  std::set<std::string> plugin_resources{};  ///< that device plugins served; none in files of older evictds
  admission::Coming coming{};                ///< none in files of older evictds
  std::string boot{};                        ///< whose clock `coming` is by; kept only with it

  friend bool operator==(const KeptAllocations&, const KeptAllocations&) = default;
};

/// As a JSON document with a kind, a version and a checksum over what it holds; the same for the same allocations.
[[nodiscard]] std::string print_allocations(const KeptAllocations& kept);

/// The same back. Errors are one line: no JSON, something else's JSON, of a later version, with a wrong checksum, or
/// content that no evictd wrote.
[[nodiscard]] Result<KeptAllocations> parse_allocations(std::string_view text);

}  // namespace evictd::node
