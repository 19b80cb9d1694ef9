#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/duration.hpp"

namespace evictd::agent {

/// Whether a new list of the runtime's pods is waited for before a pod goes for memory. It is where a cgroup among the
/// pods' holds more than the victim and no list says whose it is: the pod that it belongs to may be the one to go.
///
/// The wait has an end: the list, or 150 ms, or that half of what was available is gone, whatever comes first. No
/// further list is waited for within 10 s, so a cgroup that is no pod's delays nothing again and again, and a runtime
/// that does not answer delays one eviction by 150 ms.
class ListingFirst {
 public:
  static constexpr core::Duration patience = std::chrono::milliseconds(150);
  static constexpr core::Duration pause = std::chrono::seconds(10);

  struct Numbers {
    std::int64_t stray = 0;      ///< bytes that the largest such cgroup uses
    std::int64_t victim = 0;     ///< bytes that the pod to go uses
    std::int64_t available = 0;  ///< bytes, on the node
  };
  enum class Answer : std::uint8_t {
    go_on,
    list,  ///< ask for a list, and wait
    wait,  ///< it was asked for before
  };
  [[nodiscard]] Answer ask(const Numbers& numbers, core::Instant now);
  [[nodiscard]] bool is_waiting() const { return waiting_.has_value(); }
  /// A list that was asked for at that time is there. True where it was waited for.
  bool listed(core::Instant asked);

 private:
  struct Waiting {
    core::Instant since;
    std::int64_t available;
  };
  std::optional<Waiting> waiting_;
  std::optional<core::Instant> last_;  // when a list was waited for
};

}  // namespace evictd::agent
