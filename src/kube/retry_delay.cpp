#include "kube/retry_delay.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

namespace evictd::kube {

Random any_random() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  auto engine = std::make_shared<std::mt19937_64>(seed);
  return [engine] { return static_cast<double>((*engine)() >> 11) * 0x1.0p-53; };
}

RetryDelay::RetryDelay(RetryLimits limits, Random random) : limits_{limits}, random_{std::move(random)} {}

core::Duration RetryDelay::failed(core::Instant now, std::optional<core::Duration> demanded) {
  if (well_since_ && now - *well_since_ >= limits_.lasting) failures_ = 0;
  well_since_.reset();

  auto bound = limits_.first;
  for (int i = 0; i < failures_ && bound < limits_.longest; ++i) bound *= 2;
  bound = std::min(bound, limits_.longest);
  ++failures_;

  const auto jitter = core::Duration{static_cast<core::Duration::rep>(random_() * static_cast<double>(bound.count()))};
  const auto floor = std::clamp(demanded.value_or(core::Duration{0}), core::Duration{0}, limits_.longest_demanded);
  return floor + jitter;
}

void RetryDelay::succeeded(core::Instant now) {
  if (!well_since_) well_since_ = now;
}

}  // namespace evictd::kube
