#include "benchmarks/soak/dice.hpp"

#include <condition_variable>
#include <mutex>
#include <vector>

namespace bench::soak {

Dice::Dice(std::uint64_t seed, std::string_view who, int number) {
  std::vector<std::uint32_t> words(who.begin(), who.end());
  words.push_back(static_cast<std::uint32_t>(seed));
  words.push_back(static_cast<std::uint32_t>(seed >> 32));
  words.push_back(static_cast<std::uint32_t>(number));
  std::seed_seq seeds(words.begin(), words.end());
  numbers_.seed(seeds);
}

std::int64_t Dice::between(std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution{least, most}(numbers_);
}

std::chrono::milliseconds Dice::between(std::chrono::milliseconds least, std::chrono::milliseconds most) {
  return std::chrono::milliseconds{between(least.count(), most.count())};
}

bool pause(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock{mutex};
  woken.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace bench::soak
