#pragma once
#include <string>
#include <vector>

namespace evictd::admission {

/// A device of the node that containers may be given, as a device plugin would announce it.
struct Device {
  std::string resource;           ///< an extended resource: "example.com/gpu"
  std::string id;                 ///< one of its kind
  std::vector<int> numa_nodes{};  ///< to which it is attached; none: it is near to all of them

  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace evictd::admission
