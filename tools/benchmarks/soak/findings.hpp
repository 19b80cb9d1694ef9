#pragma once
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace bench::soak {

/// What went against a property, a line each. From any thread.
class Findings {
 public:
  static constexpr std::size_t most_lines = 50;  ///< what goes wrong once goes wrong often

  void add(std::string line);
  /// The first of them.
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] std::size_t count() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  std::size_t count_ = 0;
};

}  // namespace bench::soak
