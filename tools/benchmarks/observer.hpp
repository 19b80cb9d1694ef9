#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "os/file_descriptor.hpp"

namespace bench {

/// Nanoseconds of CLOCK_MONOTONIC, which evictd's events carry, too.
using Nanoseconds = std::int64_t;
[[nodiscard]] Nanoseconds monotonic_now();
[[nodiscard]] inline double milliseconds(Nanoseconds time) { return static_cast<double>(time) / 1e6; }

/// What the kernel says of memory at one moment, bytes.
struct Sample {
  Nanoseconds time = 0;
  std::int64_t node = 0;  ///< the node's usage, file cache included
  std::int64_t pod = 0;   ///< the watched pod's; 0 once its cgroup is gone
};

/// Looks at a node's and a pod's usage every 50 µs from a thread of its own, whoever it is that acts on the node. At
/// real-time priority where that is permitted: on a busy machine it would otherwise see late what it is there to time.
class Observer {
 public:
  /// The directories of the two memory cgroups. Looks from now on.
  Observer(const std::filesystem::path& node, const std::filesystem::path& pod);
  ~Observer() { stop(); }

  void stop();
  /// The pod's at the last look, 0: gone. May be asked at any time; it stands still after 100 s.
  [[nodiscard]] std::int64_t pod_usage() const { return pod_usage_; }
  /// After stop().
  [[nodiscard]] const std::vector<Sample>& samples() const { return samples_; }

 private:
  void look();

  evictd::os::FileDescriptor node_;
  evictd::os::FileDescriptor pod_;
  std::vector<Sample> samples_;
  std::atomic<std::int64_t> pod_usage_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

/// What the samples tell of one eviction. Nothing where it did not happen.
struct Course {
  std::optional<Nanoseconds> crossing{};       ///< the first sample with the node at the level
  std::optional<Nanoseconds> growth_over{};    ///< the pod at its peak: there the signal landed, if it was growing
  std::optional<Nanoseconds> first_release{};  ///< 32 MiB below the peak
  std::optional<Nanoseconds> released{};       ///< at a twentieth of the peak, or gone
  std::int64_t peak_of_node = 0;               ///< bytes
};

/// When things happened in whoever evicts. Nothing where they did not.
struct Stages {
  std::optional<Nanoseconds> woken{};
  std::optional<Nanoseconds> decided{};
  std::optional<Nanoseconds> killed{};   ///< the first kill(2) or StopContainer has returned
  std::optional<Nanoseconds> cleanup{};  ///< nothing of the pod runs any more
};

[[nodiscard]] Course course_of(const std::vector<Sample>& samples, std::int64_t level);

/// Whether the kernel's OOM killer has killed below the node since this object was made. On v1 each cgroup counts its
/// own processes and takes the count with it when it goes, so it must be looked at all the time.
class KernelKills {
 public:
  /// The node's memory cgroup, and on v1 all that are below it now. Fails where they cannot be read.
  explicit KernelKills(const std::filesystem::path& node);

  /// Whether there have been any.
  bool look();

 private:
  std::vector<evictd::os::FileDescriptor> files_;
  std::vector<std::int64_t> before_;
  bool any_ = false;
};

/// Has the machine give so much memory once. A virtual machine has pages that it used before at once, and fresh ones
/// slowly: without this no hog would be fast.
void warm_memory(std::int64_t bytes);

/// Opens a file of a cgroup directory for repeated reading; fails if it cannot.
[[nodiscard]] evictd::os::FileDescriptor open_counter(const std::filesystem::path& directory, const std::string& name);
/// memory.usage_in_bytes, on v2 memory.current.
[[nodiscard]] std::string usage_file();
/// From its begin. Empty once the cgroup is gone.
[[nodiscard]] std::string read_counter(const evictd::os::FileDescriptor& file);

}  // namespace bench
