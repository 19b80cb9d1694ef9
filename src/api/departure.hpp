#pragma once
#include <functional>
#include <utility>

namespace evictd::api {

/// Whether the client of a call has left it: it cancelled, its deadline is over, or its connection is gone. On the
/// reactor.
class Departure {
 public:
  [[nodiscard]] bool has_left() const { return has_left_; }
  /// Has `told` called once the client leaves; at once where it has. It takes the place of an earlier one.
  void tell(std::function<void()> told) {
    told_ = std::move(told);
    if (has_left_) told_();
  }
  /// It has.
  void leave() {
    has_left_ = true;
    if (told_) told_();
  }

 private:
  bool has_left_ = false;
  std::function<void()> told_;
};

}  // namespace evictd::api
