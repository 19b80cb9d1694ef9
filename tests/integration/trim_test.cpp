// File cache is taken before a pod goes (eviction.trim), by the kernel of this machine.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/unix_address.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"
#include "victims.hpp"

namespace integration::trim_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr auto patience = 120s;  // an emulated processor is slow
// A pass each second: also the one that first knows the pods comes while the grace period runs.
constexpr auto often = "fallbackInterval: 1s";

std::int64_t active_file(Testbed& testbed, const testbed::RunningPod& pod) {
  return testbed.node().memory_stat(pod.cgroup, "active_file");
}
std::int64_t active_file(Testbed& testbed) { return testbed.node().memory_stat("active_file"); }

/// To be told with a failure.
std::string counts_of(Testbed& testbed, const testbed::RunningPod& pod) {
  return fmt::format("active {}, inactive {}, all {}", active_file(testbed, pod),
                     testbed.node().memory_stat(pod.cgroup, "inactive_file"), testbed.node().memory_usage(pod.cgroup));
}

std::int64_t available(Agent& agent) {
  const auto status = agent.status();
  for (const auto& signal : status.signals())
    if (signal.signal() == "memory.available") return signal.available();
  FAIL("memory.available is not measured");
  return 0;
}

/// A pod that uses so much file cache.
testbed::RunningPod run_reader(Testbed& testbed, std::int64_t size) {
  const auto directory = testbed.directory() / "reader";
  std::filesystem::create_directory(directory);
  auto spec = pod("reader", QosClass::BestEffort, {"cache", "/files", std::to_string(size)});
  spec.containers[0].mounts.push_back({.host_path = directory, .container_path = "/files"});
  auto running = testbed.cri().run_pod(spec);
  testbed::wait_until("the file is read", patience, [&] { return std::filesystem::exists(directory / "load.ready"); });
  // The kernel's counts may be up to two seconds behind, the node's longer than the pod's (Trimmer::counts_lag).
  testbed::wait_until("the file is active", patience, [&] {
    return active_file(testbed, running) > size * 3 / 4 && active_file(testbed) > size * 3 / 4;
  });
  return running;
}

/// A soft threshold that so much file cache makes the node meet: it is met half of it below where it would not be.
std::string soft_threshold(std::int64_t available_now, std::int64_t cache, std::string_view grace) {
  return fmt::format(
      "evictionHard: {{memory.available: 50Mi}}\nevictionSoft: {{memory.available: \"{}\"}}\n"
      "evictionSoftGracePeriod: {{memory.available: {}}}\nevictionMaxPodGracePeriod: 1",
      available_now + cache / 2, grace);
}

/// What the node has left, as evictd counts it.
std::int64_t left_now(Testbed& testbed) {
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 1Mi}"}};
  return available(agent);
}

/// A program that listens as systemd's protocol has it.
class Listener {
 public:
  explicit Listener(const std::filesystem::path& path) : socket_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    REQUIRE(evictd::os::connect_to(socket_.get(), path.native()) == 0);
  }
  [[nodiscard]] bool was_told() const {
    std::array<char, 16> heard{};
    return ::recv(socket_.get(), heard.data(), heard.size(), MSG_DONTWAIT) > 0;
  }

 private:
  evictd::os::FileDescriptor socket_;
};

}  // namespace

TEST_CASE("a pod's file cache is taken while the grace period runs, and nobody is evicted") {
  constexpr auto cache = 300 * mebi;
  Testbed testbed{gibi_node};
  const auto reader = run_reader(testbed, cache);
  const auto thresholds = soft_threshold(left_now(testbed), cache, "20s");
  const auto before = counts_of(testbed, reader);
  Agent agent{testbed, {.thresholds = thresholds, .notifier = often, .eviction = "trim: cache"}};

  const auto trimmed =
      agent.events().wait_for("the trim", patience, [](const Event& event) { return event.kind() == Event::TRIMMED; });
  const auto after = counts_of(testbed, reader);
  CAPTURE(before);
  CAPTURE(after);
  CAPTURE(trimmed.ShortDebugString());
  CHECK(trimmed.signal() == "memory.available");
  CHECK(trimmed.trimmed().freed_bytes() > 100 * mebi);
  REQUIRE(trimmed.trimmed().pods_size() == 1);
  CHECK(testbed::key(trimmed.trimmed().pods(0).pod()) == "default/reader");
  CHECK(trimmed.trimmed().available_after() > trimmed.trimmed().available_before());
  CHECK_FALSE(trimmed.trimmed().still_short());
  CHECK(trimmed.message().ends_with("nobody evicted"));
  testbed::wait_until("less is active", patience, [&] { return active_file(testbed, reader) < cache * 3 / 4; });

  std::this_thread::sleep_for(25s);  // the grace period, and more
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/reader"));
  CHECK(testbed.cri().is_running(reader));
  CHECK(agent.status().evictions() == 0);
}

TEST_CASE("without a trim the same pod is evicted once the grace period is over") {
  constexpr auto cache = 300 * mebi;
  Testbed testbed{gibi_node};
  static_cast<void>(run_reader(testbed, cache));
  const auto thresholds = soft_threshold(left_now(testbed), cache, "3s");
  Agent agent{testbed, {.thresholds = thresholds}};
  agent.events().wait_for(Event::EVICTION_INTENDED, "default/reader", patience);
  for (const auto& event : agent.events().all()) CHECK(event.kind() != Event::TRIMMED);
}

TEST_CASE("what no trim gives back takes a pod as ever: a hog of memory beside the reader is evicted") {
  constexpr auto cache = 100 * mebi;
  Testbed testbed{gibi_node};
  const auto reader = run_reader(testbed, cache);
  const Follower hog{testbed, "hog", 400 * mebi};
  testbed::wait_until("the hog has grown", patience,
                      [&] { return testbed.node().memory_usage(hog.running.cgroup) > 400 * mebi; });
  // All of the cache does not suffice.
  const auto thresholds = soft_threshold(left_now(testbed), 4 * cache, "10s");
  Agent agent{testbed, {.thresholds = thresholds, .notifier = often, .eviction = "trim: cache"}};
  const auto trimmed =
      agent.events().wait_for("the trim", patience, [](const Event& event) { return event.kind() == Event::TRIMMED; });
  CHECK(trimmed.trimmed().still_short());
  const auto intended = agent.events().wait_for(Event::EVICTION_INTENDED, "default/hog", patience);
  CHECK(intended.sequence() > trimmed.sequence());
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", patience);
  CHECK(testbed.cri().is_running(reader));
}

TEST_CASE("programs that listen are told when a trim begins, and the socket goes with evictd") {
  constexpr auto cache = 300 * mebi;
  Testbed testbed{gibi_node};
  static_cast<void>(run_reader(testbed, cache));
  const Follower hog{testbed, "hog", 8 * mebi};
  const auto left = left_now(testbed);
  const auto run = testbed.directory() / "trim-run";
  std::filesystem::create_directory(run);
  // Nothing is short until the hog grows.
  const auto threshold = left - 100 * mebi;
  Agent agent{testbed,
              {.thresholds = fmt::format("evictionHard: {{memory.available: 50Mi}}\n"
                                         "evictionSoft: {{memory.available: \"{}\"}}\n"
                                         "evictionSoftGracePeriod: {{memory.available: 1h}}",
                                         threshold),
               .notifier = often,
               .eviction = "trim: all",
               .runtime_directory = run}};
  const auto path = run / "pressure/pressure.sock";
  agent.wait_for_pods(2);
  const Listener listener{path};
  std::this_thread::sleep_for(1s);  // it is taken beside the loop
  hog.hold(200 * mebi);
  const auto trimmed =
      agent.events().wait_for("the trim", patience, [](const Event& event) { return event.kind() == Event::TRIMMED; });
  CHECK(trimmed.trimmed().programs_told() == 1);
  CHECK(listener.was_told());
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(patience) == 0);
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace integration::trim_test
