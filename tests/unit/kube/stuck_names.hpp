#pragma once
#include <cstddef>

namespace evictd::test {

/// A name server that does not answer, for the names below ".stuck.invalid": whoever asks for one of them waits for as
/// long as this lives. A fake: it stands before the C library's getaddrinfo in this program, and hands on every other
/// name.
class StuckNames {
 public:
  StuckNames();
  StuckNames(const StuckNames&) = delete;
  StuckNames& operator=(const StuckNames&) = delete;
  /// Everybody is told that the name is not there, and has gone when this returns.
  ~StuckNames();

  /// How many threads wait.
  [[nodiscard]] static std::size_t waiting();
};

}  // namespace evictd::test
