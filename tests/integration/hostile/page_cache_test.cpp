#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "history.hpp"
#include "hostile/soon.hpp"
#include "stopped.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::page_cache_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t cached = 300 * mebi;

/// A file that is read again and again is in use (active_file) to the kernel's older lists of pages alone, not where it
/// keeps generations of them (lru_gen, Linux 6.1). On a machine of the tests' own they are kept while this is.
class OlderPageLists {
 public:
  OlderPageLists() {
    if (std::getenv("EVICTD_TEST_OWN_MACHINE") == nullptr) return;
    std::getline(std::ifstream{switch_file}, before_);
    if (!before_.empty()) std::ofstream{switch_file} << "n";
  }
  OlderPageLists(const OlderPageLists&) = delete;
  OlderPageLists& operator=(const OlderPageLists&) = delete;
  ~OlderPageLists() {
    if (!before_.empty()) std::ofstream{switch_file} << before_;
  }

 private:
  static constexpr auto switch_file = "/sys/kernel/mm/lru_gen/enabled";
  std::string before_;  // empty: there is no switch, or it is not ours
};

/// A pod with little memory of its own, and with a file that is read again and again.
struct Reader {
  std::filesystem::path directory;
  testbed::RunningPod running;

  explicit Reader(Testbed& testbed) : directory{testbed.directory() / "files"} {
    std::filesystem::create_directory(directory);
    auto spec =
        integration::pod("reader", QosClass::BestEffort, {"write", "/data", std::to_string(cached), "2000Mi/s"});
    spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/data"});
    running = testbed.cri().run_pod(spec);
    const auto file = directory / "load.data";
    testbed::wait_until("the file is written", 60s, [&] {
      return std::filesystem::exists(file) && std::filesystem::file_size(file) == static_cast<std::uintmax_t>(cached);
    });
    testbed::wait_until("its cache is in use", 60s, [&] {
      std::ifstream stream{file, std::ios::binary};
      std::vector<char> piece(1 << 20);
      while (stream.read(piece.data(), static_cast<std::streamsize>(piece.size()))) continue;
      return testbed.node().memory_stat(running.cgroup, "active_file") > cached * 9 / 10;
    });
  }
};

bool runs(Testbed& testbed, const testbed::RunningPod& pod) {
  return !testbed.node().processes(pod.container_cgroup()).empty();
}

}  // namespace

TEST_SUITE_BEGIN("hostile");

TEST_CASE("file cache that a dead pod leaves behind does not hold up the next eviction while containerd is slow") {
  const OlderPageLists older_lists;
  Testbed testbed{integration::gibi_node};
  const auto chill = testbed.cri().run_pod(integration::pod("chill", QosClass::Burstable, {"hold", "100Mi"}));
  const auto vital =
      testbed.cri().run_pod(integration::pod("vital", QosClass::BestEffort, {"hold", "150Mi"}, 2'000'000'000));
  const Reader reader{testbed};
  const integration::Follower hog{testbed, "hog"};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}", .keep_history = true}};
  agent.wait_for_pods(4);
  {
    const integration::Stopped containerd{testbed.containerd().pid()};
    // The reader uses more than the hog when the node runs short. It goes, and its cache stays.
    for (auto size = 20 * mebi; size <= 400 * mebi && runs(testbed, hog.running); size += 20 * mebi) {
      hog.hold(size);
      std::this_thread::sleep_for(50ms);
    }
    testbed::wait_until("the hog's processes are dead", integration::soon, [&] { return !runs(testbed, hog.running); });
    CHECK_FALSE(runs(testbed, reader.running));
    CHECK(testbed.node().memory_stat(reader.running.cgroup, "active_file") > cached / 2);
    CHECK(runs(testbed, chill));
    CHECK(runs(testbed, vital));
  }
  for (const auto* victim : {"default/reader", "default/hog"})
    agent.events().wait_for(Event::CLEANUP_DONE, victim, 60s);
  const auto events = integration::history(agent);
  for (const auto* victim : {"default/reader", "default/hog"})
    CHECK(integration::count(events, Event::EVICTION_INTENDED, victim) == 1);
  CHECK(std::ranges::count(events, Event::EVICTION_INTENDED, &Event::kind) == 2);
}

TEST_SUITE_END();

}  // namespace integration::page_cache_test
