#pragma once
#include <string>

#include "core/duration.hpp"

namespace evictd::wake {

/// A stall that is too much: tasks waited for memory for `stall` within `window`.
struct PsiLevel {
  bool full = false;  ///< all tasks at once, instead of at least one of them
  core::Duration stall{};
  core::Duration window{};

  /// "some 50ms in 500ms"
  [[nodiscard]] std::string text() const;
  /// "some 50000 500000", as the kernel takes it, which counts in µs.
  [[nodiscard]] std::string command() const;

  /// The same part of the shortest longer window that the kernel takes from everybody (Linux 6.6; others than multiples
  /// of 2 s need CAP_SYS_RESOURCE). Of a window that is such a multiple, itself.
  [[nodiscard]] PsiLevel without_privilege() const;

  friend bool operator==(const PsiLevel&, const PsiLevel&) = default;
};

}  // namespace evictd::wake
