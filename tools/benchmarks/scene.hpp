#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/floor.hpp"
#include "benchmarks/variant.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"

namespace bench {

/// For evictd's runtimeDirectory: on a tmpfs, as a node's /run is.
struct RunDirectory {
  explicit RunDirectory(const testbed::Testbed& testbed);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;

  std::filesystem::path path;
};

/// A node of 1 GiB on a real containerd, with calm pods on it that nobody should evict.
class Scene {
 public:
  static constexpr std::int64_t node_memory = 1024 * mebi;

  /// `threshold`: memory.available below so many bytes evicts at once.
  explicit Scene(std::int64_t threshold);

  [[nodiscard]] testbed::Testbed& testbed() { return testbed_; }
  /// "evictionHard: {memory.available: …}"
  [[nodiscard]] std::string thresholds() const;
  /// The node's usage at which memory.available reaches the threshold, file cache counted as evictd does.
  [[nodiscard]] std::int64_t level();
  [[nodiscard]] std::size_t calm_pods() const { return calm_.size(); }
  [[nodiscard]] bool calm_pods_run();
  [[nodiscard]] const std::filesystem::path& runtime_directory() const { return run_.path; }
  /// Until the memory of an earlier victim is back.
  void wait_until_calm();

 private:
  testbed::Testbed testbed_;
  RunDirectory run_{testbed_};
  std::int64_t threshold_;
  std::vector<testbed::RunningPod> calm_;
};

/// A BestEffort pod that does as a file tells it. It is removed with this object.
class Victim {
 public:
  /// `load`: with "FILE" where the file's path in the container belongs.
  Victim(Scene& scene, const std::string& name, std::vector<std::string> load, std::string_view text);
  ~Victim();
  Victim(const Victim&) = delete;

  void tell(std::string_view text) const;
  [[nodiscard]] const testbed::RunningPod& pod() const { return pod_; }
  [[nodiscard]] std::string key() const { return pod_.name_space + "/" + pod_.name; }
  /// In the memory hierarchy.
  [[nodiscard]] std::filesystem::path cgroup() const;

 private:
  Scene& scene_;
  std::filesystem::path directory_;
  testbed::RunningPod pod_;
};

/// What evictd's own events say of the eviction, once it is cleaned up.
[[nodiscard]] Stages stages_of(const evictd::v1::Event& cleanup);

/// Says on stderr how far the bench is.
void progress(std::string_view text);

}  // namespace bench
