#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace bench::soak {

/// What went against a property, a line each. From any thread.
class Findings {
 public:
  static constexpr std::size_t most_lines = 50;  ///< what goes wrong once goes wrong often

  void add(std::string line) {
    const std::lock_guard lock{mutex_};
    ++count_;
    if (lines_.size() == most_lines) return;
    fmt::print(stderr, "VIOLATED: {}\n", line);
    lines_.push_back(std::move(line));
  }
  /// The first of them.
  [[nodiscard]] std::vector<std::string> lines() const {
    const std::lock_guard lock{mutex_};
    return lines_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock{mutex_};
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

}  // namespace bench::soak
