#include "benchmarks/soak/findings.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace bench::soak {

void Findings::add(std::string line) {
  const std::lock_guard lock{mutex_};
  ++count_;
  if (lines_.size() == most_lines) return;
  fmt::print(stderr, "VIOLATED: {}\n", line);
  lines_.push_back(std::move(line));
}

std::vector<std::string> Findings::lines() const {
  const std::lock_guard lock{mutex_};
  return lines_;
}

std::size_t Findings::count() const {
  const std::lock_guard lock{mutex_};
  return count_;
}

}  // namespace bench::soak
