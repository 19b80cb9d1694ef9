#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "evictd.pb.h"

namespace evictd::ctl {

/// What `evictctl thresholds set` is given.
struct ThresholdArguments {
  std::vector<std::string> assignments;          ///< "memory.available=500Mi"; nothing behind the sign removes
  bool soft = false;                             ///< all of them are soft thresholds
  std::string grace{};                           ///< of all of them, "1m30s"; empty: as it is
  std::optional<std::string> minimum_reclaim{};  ///< of all their signals; absent: as it is
};

/// The changes that the arguments ask for. Whether signals and values are any good is for the agent to say.
[[nodiscard]] Result<std::vector<v1::ThresholdChange>> threshold_changes(const ThresholdArguments& arguments);

}  // namespace evictd::ctl
