#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/signal.hpp"

namespace evictd::wake {

/// Where a memory threshold lies on the usage counter of the signal's cgroup.
struct UsageLevel {
  /// Bytes: the usage at which the threshold is reached now (capacity − threshold + inactive_file).
  std::int64_t bytes = 0;
  /// Bytes: up to this usage the threshold cannot be reached (capacity − threshold). From here on it can be without any
  /// more usage: the kernel takes file cache back while the working set grows. Absent where no usage says that.
  std::optional<std::int64_t> without_reclaimable{};
  std::int64_t current = 0;  ///< bytes: the counter's value
  /// Another number, another cgroup of the same name: what was armed before is void.
  std::uint64_t incarnation = 0;
};

/// A threshold as it stood at the last reading of the node.
struct Level {
  core::Signal signal = core::Signal::MemoryAvailable;
  bool hard = true;
  std::int64_t threshold = 0;         ///< in the signal's unit: met once less is available
  std::int64_t available = 0;         ///< the same: the reading's value
  std::optional<UsageLevel> usage{};  ///< memory signals only
  std::optional<core::Instant>
      time{};  ///< of that reading, where it is not the arming's: disks are read beside the loop
};

/// A pod and where its files are.
struct PodFiles {
  std::string uid;
  std::vector<std::string> directories;  ///< each with everything below it; they need not exist yet
};
/// A pod that keeps its pointer has kept its directories, so who watches thousands of pods looks at new pointers alone.
using WatchedPods = std::vector<std::shared_ptr<const PodFiles>>;

/// What sources arm themselves by, handed to all of them after every reading of the node.
struct Arming {
  std::vector<Level> levels;
  core::Instant time{};  ///< when the node was read for them
  /// Victims are killed, and what they held is coming back.
  bool releasing = false;
  /// Memory is short, and nobody may be evicted for it: there is nobody, or as many have gone as may.
  bool nobody_goes = false;
  std::filesystem::path images;  ///< the directory that stands for the image file system; empty: not known yet
  /// The pods whose files are watched; with another pointer, what was not there is looked for again. Null: none are
  /// known yet.
  std::shared_ptr<const WatchedPods> watched{};
};

/// A source, or one of the things it watches, as `evictctl status` shows it.
struct SourceStatus {
  std::string name;
  std::string state;                    ///< "armed", "armed: …", "every 10s", "waiting: …", "off: …", "failed: …"
  std::optional<std::int64_t> level{};  ///< bytes of usage, where the source has one
  std::uint64_t wakes = 0;
  std::optional<core::Instant> last_wake{};
  std::string detail{};                ///< more for people, one line
  std::uint64_t rearms = 0;            ///< how often it was armed anew, where it arms something in the kernel
  std::uint64_t re_registrations = 0;  ///< how often because the registration was lost or silent
  std::uint64_t missed = 0;            ///< what it should have told of and did not
  std::uint64_t spurious = 0;          ///< what it told of that a reading did not find
};

/// Something that wakes a pass. It owns its descriptors, lives on the reactor and wakes through a Notifier; destroying
/// it closes everything. A new source is one file in this folder and one line where the sources are put together.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// Follows the node, and opens again what was closed. Cheap when nothing moved enough to matter.
  virtual void arm(const Arming& arming) = 0;
  /// The kernel may have forgotten what was registered with it: the next arm() registers all of it anew.
  virtual void rearm_all() {}
  /// One entry for each thing it watches.
  [[nodiscard]] virtual std::vector<SourceStatus> status() const = 0;
};

}  // namespace evictd::wake
