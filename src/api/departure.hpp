#pragma once
#include <atomic>
#include <functional>
#include <utility>

namespace evictd::api {

/// Whether the client of a call has left it: it cancelled, its deadline is over, or its connection is gone. On the
/// reactor, but for has_left().
class Departure {
 public:
  /// Any thread.
  [[nodiscard]] bool has_left() const { return has_left_; }
  /// Has `told` called once the client leaves; at once where it has. It takes the place of an earlier one.
  void tell(std::move_only_function<void()> told) {
    if (has_left_)
      told();
    else
      told_ = std::move(told);
  }
  /// It has.
  void leave() {
    has_left_ = true;
    if (auto told = std::exchange(told_, nullptr)) told();
  }

 private:
  std::atomic<bool> has_left_ = false;
  std::move_only_function<void()> told_;
};

}  // namespace evictd::api
