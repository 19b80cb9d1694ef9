#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <stop_token>
#include <string_view>
#include <vector>

namespace bench::soak {

/// The random choices of one who takes part in a soak. They follow from the run's seed and from who it is alone: how
/// the threads take turns changes nothing in them.
class Dice {
 public:
  Dice(std::uint64_t seed, std::string_view who, int number = 0) {
    std::vector<std::uint32_t> words(who.begin(), who.end());
    words.push_back(static_cast<std::uint32_t>(seed));
    words.push_back(static_cast<std::uint32_t>(seed >> 32));
    words.push_back(static_cast<std::uint32_t>(number));
    std::seed_seq seeds(words.begin(), words.end());
    numbers_.seed(seeds);
  }

  /// Both ends included.
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution{least, most}(numbers_);
  }
  [[nodiscard]] std::chrono::milliseconds between(std::chrono::milliseconds least, std::chrono::milliseconds most) {
    return std::chrono::milliseconds{between(least.count(), most.count())};
  }
  [[nodiscard]] bool percent(int chance) { return between(1, 100) <= chance; }

 private:
  std::mt19937_64 numbers_;
};

/// Sleeps. False: it was asked to stop, before or meanwhile.
inline bool pause(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock{mutex};
  woken.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace bench::soak
