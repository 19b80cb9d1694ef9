#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/duration.hpp"

namespace evictd::host {

/// Something evictd can make use of, and whether this machine has it.
struct Offer {
  std::string name;  ///< "pidfd"
  bool available = false;
  std::string detail;       ///< what was found, or why it is not there
  std::string consequence;  ///< what does not work without it; empty where it is available
};

/// Asks the kernel, not its version: each offer is tried. `memory_cgroup`: the directory of the node's memory cgroup;
/// `v2`: which interface it has. `shutdown_delay`: for how long a shutdown of the node has to wait for its pods; 0: it
/// need not. Changes nothing and takes milliseconds.
[[nodiscard]] std::vector<Offer> probe_offers(const std::filesystem::path& memory_cgroup, bool v2,
                                              core::Duration shutdown_delay = {});

}  // namespace evictd::host
