#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/observer.hpp"
#include "testbed/agent.hpp"
#include "testbed/pod_spec.hpp"
#include "testbed/testbed.hpp"

namespace bench {

inline constexpr std::int64_t mebi = 1 << 20;

/// Who acts when memory runs short.
enum class Variant : std::uint8_t {
  fast,        ///< evictd, kill.mode fast: it kills the processes itself, then tells the runtime
  cri,         ///< evictd, kill.mode cri: the runtime kills
  timer,       ///< evictd, kill.mode fast, but woken by nothing except its timer
  sampler,     ///< evictd, kill.mode fast, notifier.v2 sampler: cgroup v2 alone, where "fast" has a tripwire
  fence,       ///< the same with notifier.v2 fence
  hook,        ///< evictd, kill.mode fast, and a hook before each kill that answers at once
  hook_hangs,  ///< the same with a hook that never answers and has 100 ms
  floor,       ///< the loop in floor.hpp
};

/// "evictd fast", …, "floor"
[[nodiscard]] std::string name(Variant variant);
/// By their short names: "fast", …, "hook-hangs", "floor". Fails where one of them is cgroup v2's, and this machine has
/// v1.
[[nodiscard]] std::vector<Variant> variants_named(const std::vector<std::string>& names);

/// The configuration of evictd for the variant, with the thresholds given as KubeletConfiguration.
[[nodiscard]] testbed::Agent::Options agent_options(Variant variant, std::string thresholds);

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
  /// Of a run, how much of the node's memory was free at the worst moment that was seen: MiB, a list of one.
  [[nodiscard]] static std::vector<double> left_mib(const Observer& observer);

 private:
  testbed::Testbed testbed_;
  RunDirectory run_{testbed_};
  std::int64_t threshold_;
  std::vector<testbed::RunningPod> calm_;
};

/// A pod of one container with a directory of its own, in which a file tells it what to do. Both are removed with this
/// object.
class OwnPod {
 public:
  // In the container.
  static constexpr const char* mount = "/own";
  static constexpr const char* word = "/own/word";

  /// `told`: before it runs; empty: nothing.
  OwnPod(testbed::Testbed& testbed, testbed::PodSpec spec, std::string_view told = "");
  /// One that runs already.
  OwnPod(testbed::Testbed& testbed, testbed::RunningPod pod, std::filesystem::path directory);
  ~OwnPod();
  OwnPod(const OwnPod&) = delete;

  void tell(std::string_view text) const;
  /// For one that follows a size, in bytes.
  void hold(std::int64_t bytes) const { tell(std::to_string(bytes)); }
  /// Beside the sandbox's own process something runs in it.
  [[nodiscard]] bool lives() const { return !testbed_.node().processes(pod_.container_cgroup()).empty(); }
  [[nodiscard]] const testbed::RunningPod& pod() const { return pod_; }
  [[nodiscard]] std::string key() const { return pod_.name_space + "/" + pod_.name; }
  /// In the memory hierarchy.
  [[nodiscard]] std::filesystem::path cgroup() const { return testbed_.node().memory_directory(pod_.cgroup); }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

 private:
  testbed::Testbed& testbed_;
  std::filesystem::path directory_;
  testbed::RunningPod pod_;
};

/// What evictd's own events say of the eviction, once it is cleaned up.
[[nodiscard]] Stages stages_of(const evictd::v1::Event& cleanup);
[[nodiscard]] double milliseconds(const google::protobuf::Duration& time);

}  // namespace bench
