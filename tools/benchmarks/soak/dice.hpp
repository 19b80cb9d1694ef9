#pragma once
#include <chrono>
#include <cstdint>
#include <random>
#include <stop_token>
#include <string_view>

namespace bench::soak {

/// The random choices of one who takes part in a soak. They follow from the run's seed and from who it is alone: how
/// the threads take turns changes nothing in them.
class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view who, int number = 0);

  /// Both ends included.
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most);
  [[nodiscard]] std::chrono::milliseconds between(std::chrono::milliseconds least, std::chrono::milliseconds most);
  [[nodiscard]] bool percent(int chance) { return between(1, 100) <= chance; }

 private:
  std::mt19937_64 numbers_;
};

/// Sleeps. False: it was asked to stop, before or meanwhile.
bool pause(const std::stop_token& stop, std::chrono::milliseconds time);

}  // namespace bench::soak
