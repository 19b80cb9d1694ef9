#include "benchmarks/oom.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "benchmarks/observer.hpp"
#include "benchmarks/scene.hpp"
#include "benchmarks/statistics.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;
using evictd::v1::Event;

namespace {

constexpr std::int64_t oom_threshold = 100 * mebi;
constexpr std::string_view hog_size = "4Gi";  // more than the node has, whatever becomes of some of its processes

/// How often the kernel's OOM killer has killed below the node since this object was made. On v1 each cgroup counts its
/// own processes and takes the count with it when it goes, so it must be looked at all the time.
class OomKills {
 public:
  explicit OomKills(const fs::path& node) {
    const bool v2 = testbed::cgroup_host().v2;
    files_.push_back(open_counter(node, v2 ? "memory.events" : "memory.oom_control"));
    if (!v2)
      for (const auto& entry : fs::recursive_directory_iterator(node))
        if (entry.is_directory()) files_.push_back(open_counter(entry.path(), "memory.oom_control"));
    before_.resize(files_.size());
    for (std::size_t i = 0; i < files_.size(); ++i) before_[i] = read(files_[i]);
  }

  /// Whether there have been any.
  bool look() {
    for (std::size_t i = 0; i < files_.size(); ++i) any_ = any_ || read(files_[i]) > before_[i];
    return any_;
  }

 private:
  static std::int64_t read(const evictd::os::FileDescriptor& file) {
    std::istringstream words{read_counter(file)};
    for (std::string word; words >> word;)
      if (std::int64_t count = 0; word == "oom_kill" && words >> count) return count;
    return 0;
  }

  std::vector<evictd::os::FileDescriptor> files_;
  std::vector<std::int64_t> before_;
  bool any_ = false;
};

/// A virtual machine has pages that it used before at once, and fresh ones slowly: then no hog would be fast.
void warm_memory(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) ::munmap(memory, size);
}

std::vector<std::string> load_of(const Hog& hog) {
  std::vector<std::string> load{"burst", "FILE", std::string(hog_size)};
  if (hog.huge_pages) load.emplace_back("huge");
  load.push_back(std::to_string(hog.processes));
  return load;
}

void run_once(Scene& scene, OomRuns& result, int number) {
  scene.wait_until_calm();
  testbed::Agent agent{scene.testbed(), agent_options(result.variant, scene.thresholds())};
  const Victim hog{scene, fmt::format("hog-{}", number), load_of(result.hog), ""};
  agent.wait_for_pods(scene.calm_pods() + 1);
  std::this_thread::sleep_for(1500ms);  // what the pod's start stirred up is over, and makes nobody look by chance

  OomKills kills{scene.testbed().node().memory_directory()};
  Observer observer{scene.testbed().node().memory_directory(), hog.cgroup()};
  hog.tell("go");
  bool evicted = false;
  const auto look = [&] {
    evicted = agent.events().has(Event::CONTAINERS_KILLED, hog.key());
    return kills.look() || evicted;
  };
  testbed::wait_until("the hog is evicted or killed by the kernel", 2min, look);
  // Whoever of the two comes second counts as well.
  std::ignore = testbed::comes_true(2s, [&] {
    look();
    return evicted && kills.look();
  });
  observer.stop();
  std::int64_t most = 0;
  for (const auto& sample : observer.samples()) most = std::max(most, sample.node);
  ++result.runs;
  result.kernel_kills += kills.look() ? 1 : 0;
  result.evictions += evicted ? 1 : 0;
  // For a moment the kernel charges a little more than the limit.
  result.left_mib.push_back(static_cast<double>(std::max<std::int64_t>(Scene::node_memory - most, 0)) / mebi);
}

}  // namespace

std::string name(const Hog& hog) {
  return fmt::format("{} pages, {} process{}", hog.huge_pages ? "huge" : "4 KiB", hog.processes,
                     hog.processes == 1 ? "" : "es");
}

std::vector<OomRuns> measure_oom(int runs, std::span<const Variant> variants) {
  std::vector<OomRuns> results;
  for (const auto hog : {Hog{false, 1}, Hog{false, 8}, Hog{true, 1}, Hog{true, 8}})
    for (const auto variant : variants) results.push_back({.hog = hog, .variant = variant});
  Scene scene{oom_threshold};
  warm_memory(Scene::node_memory * 2);
  int number = 0;
  for (int round = 1; round <= runs; ++round)
    for (auto& result : results) {
      run_once(scene, result, ++number);
      progress(fmt::format("run {}/{}, {}, {}: {} kernel OOM kills, {:.0f} MiB left", round, runs, name(result.hog),
                           name(result.variant), result.kernel_kills, result.left_mib.back()));
    }
  return results;
}

std::string oom_table(const std::vector<OomRuns>& results) {
  auto table = fmt::format(
      "A node of 1 GiB, memory.available<100Mi. Left: free memory at the worst moment, MiB.\n\n"
      "{:<26}{:<14}{:>6}{:>14}{:>12}{:>14}{:>12}\n",
      "hog", "", "runs", "kernel kills", "evictions", "left, median", "left, least");
  for (const auto& result : results) {
    const double least = result.left_mib.empty() ? 0 : *std::ranges::min_element(result.left_mib);
    fmt::format_to(std::back_inserter(table), "{:<26}{:<14}{:>6}{:>14}{:>12}{:>14.1f}{:>12.1f}\n", name(result.hog),
                   name(result.variant), result.runs, result.kernel_kills, result.evictions,
                   summarize(result.left_mib).median, least);
  }
  return table;
}

std::string oom_json(const std::vector<OomRuns>& results) {
  json::array rows;
  for (const auto& result : results)
    rows.push_back(json::object{{"hugePages", result.hog.huge_pages},
                                {"processes", result.hog.processes},
                                {"variant", name(result.variant)},
                                {"runs", result.runs},
                                {"kernelOomKills", result.kernel_kills},
                                {"evictions", result.evictions},
                                {"leftMiB", json::value_from(result.left_mib)}});
  return json::serialize(json::object{{"bench", "oom"}, {"results", std::move(rows)}});
}

}  // namespace bench
