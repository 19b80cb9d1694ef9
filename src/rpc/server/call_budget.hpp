#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace evictd::rpc {

struct CallLimits {
  /// The weight of all unary calls in flight on one way in; one more gets RESOURCE_EXHAUSTED. A node that boots asks
  /// about some 250 pods at a time, with a weight of 1 each.
  std::size_t total = 512;
  /// The same of one caller: half of the total, so that no caller takes all.
  std::size_t per_caller = 256;
};

/// How much of the budget a call takes: 1, and more for many pods (1 for each 16) and for large texts (1 for each
/// 256 KiB). So all AdmitBatch calls in flight hold some 8,000 pods and 128 MiB of text at most.
[[nodiscard]] std::size_t weight_of_call(std::size_t pods, std::size_t bytes);

/// Counts the unary calls in flight, of all callers and of each. Any thread.
class CallBudget : public std::enable_shared_from_this<CallBudget> {
 public:
  explicit CallBudget(CallLimits limits) : limits_(limits) {}

  /// Gives its part of the budget back when the last copy goes.
  using Place = std::shared_ptr<const void>;

  /// Null: there is no room. A call that is too heavy for the limit of one caller may be that caller's only one.
  [[nodiscard]] Place take(const std::string& caller, std::size_t weight);
  /// No call is in flight.
  [[nodiscard]] bool is_whole() const;

 private:
  void give_back(const std::string& caller, std::size_t weight);

  const CallLimits limits_;
  mutable std::mutex mutex_;
  std::size_t total_ = 0;
  std::unordered_map<std::string, std::size_t> by_caller_;
};

}  // namespace evictd::rpc
