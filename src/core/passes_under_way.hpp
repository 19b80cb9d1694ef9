#pragma once
#include <cstdint>
#include <optional>

namespace evictd::core {

/// Which passes still count. A newer reading of the node makes an older pass pointless, because it would act on older
/// numbers. Only the pass that waits for a disk goes on, because measuring a disk takes longer than the time between
/// two passes. There is at most one of those.
class PassesUnderWay {
 public:
  using Number = std::uint64_t;

  [[nodiscard]] Number begin() { return ++newest_; }
  /// From now on this pass outlives newer ones.
  void wait_for_disk(Number pass) { disk_ = pass; }
  void end(Number pass) {
    if (disk_ == pass) disk_.reset();
  }
  /// What they began with holds no more.
  void drop_all() {
    ++newest_;
    disk_.reset();
  }

  [[nodiscard]] bool is_wanted(Number pass) const { return pass == newest_ || disk_ == pass; }
  [[nodiscard]] bool waits_for_disk() const { return disk_.has_value(); }

 private:
  Number newest_ = 0;
  std::optional<Number> disk_;
};

}  // namespace evictd::core
