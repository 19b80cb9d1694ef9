#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "admission/allocation/numa_mask.hpp"

namespace evictd::admission {

/// From which NUMA nodes a request could be met, and whether that is as few as it can be.
struct Hint {
  std::optional<NumaMask> affinity{};  ///< absent: any
  bool preferred = false;

  friend bool operator==(const Hint&, const Hint&) = default;
};

/// What can be had of one resource. Absent: it lies nowhere in particular; empty: there is no way to have it.
using ResourceHints = std::optional<std::vector<Hint>>;

/// What one provider has to say, by resource; empty: it does not care.
using ProviderHints = std::map<std::string, ResourceHints, std::less<>>;

}  // namespace evictd::admission
