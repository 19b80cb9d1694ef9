#pragma once
#include <cstdint>

#include "core/duration.hpp"

namespace evictd::agent {

/// Bytes at a moment.
struct MemorySample {
  core::Instant time;
  std::int64_t bytes = 0;

  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

}  // namespace evictd::agent
