#include "rpc/server/call_budget.hpp"

#include <algorithm>

namespace evictd::rpc {

std::size_t weight_of_call(std::size_t pods, std::size_t bytes) {
  constexpr std::size_t pods_in_one = 16;
  constexpr std::size_t bytes_in_one = std::size_t{256} << 10;
  return 1 + pods / pods_in_one + bytes / bytes_in_one;
}

CallBudget::Place CallBudget::take(const std::string& caller, std::size_t weight) {
  weight = std::min({weight, limits_.per_caller, limits_.total});
  const std::lock_guard lock(mutex_);
  const auto found = by_caller_.find(caller);
  const auto used = found == by_caller_.end() ? 0 : found->second;
  if (total_ + weight > limits_.total || used + weight > limits_.per_caller) return nullptr;
  total_ += weight;
  by_caller_[caller] += weight;
  return {this, [self = shared_from_this(), caller, weight](const void*) { self->give_back(caller, weight); }};
}

bool CallBudget::is_whole() const {
  const std::lock_guard lock(mutex_);
  return total_ == 0;
}

void CallBudget::give_back(const std::string& caller, std::size_t weight) {
  const std::lock_guard lock(mutex_);
  total_ -= weight;
  const auto found = by_caller_.find(caller);
  if (found != by_caller_.end() && (found->second -= weight) == 0) by_caller_.erase(found);
}

}  // namespace evictd::rpc
