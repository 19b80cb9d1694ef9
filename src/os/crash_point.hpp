#pragma once
#include <string_view>

namespace evictd::os {

/// What a test build does at a crash point (tests/integration/crashing_evictd.cpp). Null in evictd itself.
inline void (*at_crash_point)(std::string_view name) = nullptr;

/// A place where the tests kill evictd, have it throw, or hold it, to see what becomes of an eviction. Otherwise one
/// look at a pointer.
inline void crash_point(std::string_view name) {
  if (at_crash_point != nullptr) at_crash_point(name);
}

}  // namespace evictd::os
