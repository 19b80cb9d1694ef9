#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::kube {

/// Whole lines out of bytes as they come.
class Lines {
 public:
  explicit Lines(std::size_t longest) : longest_{longest} {}

  void add(std::string_view bytes) { buffer_ += bytes; }
  /// The next line without its end; nothing if it is not complete yet. Empty lines are left out. Error: it is longer
  /// than it may be.
  [[nodiscard]] Result<std::optional<std::string>> next();
  /// Part of a line is there.
  [[nodiscard]] bool has_rest() const { return begin_ < buffer_.size(); }

 private:
  std::size_t longest_;
  std::string buffer_;
  std::size_t begin_ = 0;     // of the line
  std::size_t searched_ = 0;  // up to here there is no line end
};

}  // namespace evictd::kube
