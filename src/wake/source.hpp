#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/signal.hpp"

namespace evictd::wake {

/// A memory threshold as the kernel sees it.
struct MemoryLevel {
  core::Signal signal = core::Signal::MemoryAvailable;
  std::int64_t available = 0;  ///< bytes: the threshold
  std::int64_t usage =
      0;  ///< bytes: the cgroup's usage at which `available` is reached now (capacity - threshold + inactive_file)
  std::uint64_t incarnation = 0;  ///< another number, another cgroup of the same name: what was armed before is void
};

/// What sources arm themselves by, handed to all of them after every reading of the node.
struct Arming {
  std::vector<MemoryLevel> memory;
};

/// A source as `evictctl status` shows it.
struct SourceStatus {
  std::string name;
  std::string state;                    ///< "armed", "waiting: …", "failed: …"
  std::optional<std::int64_t> level{};  ///< bytes of usage, where the source has one
  std::uint64_t wakes = 0;
  std::optional<core::Instant> last_wake{};
};

/// Something that wakes a pass. It owns its descriptors, lives on the reactor and reports to Wakes; destroying it
/// closes everything.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Follows the node. Cheap when nothing moved enough to matter.
  virtual void arm(const Arming& arming) = 0;
  /// One entry for each thing it watches.
  [[nodiscard]] virtual std::vector<SourceStatus> status() const = 0;
};

}  // namespace evictd::wake
