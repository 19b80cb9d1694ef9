#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>

#include "fault_scene.hpp"
#include "history.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/agent.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "victims.hpp"

namespace integration::faults_kernel_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

/// Each read of the file fails with EIO for as long as this lives: what is mounted over it is this process's memory,
/// which has nothing at the address 0.
class Unreadable {
 public:
  explicit Unreadable(const std::filesystem::path& file) {
    testbed::run({"mount", "--bind", fmt::format("/proc/{}/mem", ::getpid()), file});
    mount_ = evictd::os::FileDescriptor{::open(file.c_str(), O_PATH | O_CLOEXEC)};
    REQUIRE(mount_);
  }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;
  ~Unreadable() { ::umount2(fmt::format("/proc/self/fd/{}", mount_.get()).c_str(), MNT_DETACH); }

 private:
  evictd::os::FileDescriptor mount_;  // its path goes with the cgroup
};

/// Bytes of address space.
rlim_t address_space_of(pid_t pid) {
  std::istringstream fields{testbed::read_file(fmt::format("/proc/{}/statm", pid))};
  rlim_t pages = 0;
  fields >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_SUITE_BEGIN("faults");

TEST_CASE("the cgroup files of the pods' cgroup and of the pod itself cannot be read: it goes, and it alone") {
  Testbed testbed{integration::gibi_node};
  const Follower hog{testbed, "hog"};
  const auto chill = testbed.cri().run_pod(integration::pod("chill", QosClass::Burstable, {"hold", "100Mi"}));
  const auto of_hog = testbed.node().memory_directory(hog.running.cgroup);
  const Unreadable statistics{of_hog / "memory.stat"};
  const Unreadable usage{of_hog / (testbed::cgroup_host().v2 ? "memory.current" : "memory.usage_in_bytes")};
  const Unreadable together{testbed.node().memory_directory(testbed.node().cgroup() + "/kubepods") / "memory.stat"};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}", .keep_history = true}};
  agent.wait_for_pods(2);
  hog.hold(700 * mebi);
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", FaultScene::long_enough);
  CHECK(testbed.cri().is_running(chill));
  CHECK(integration::count(integration::history(agent), Event::EVICTION_INTENDED, "default/hog") == 1);
  CHECK_FALSE(agent.events().has(Event::EVICTION_INTENDED, "default/chill"));
  for (const auto* said : {"node.podsCgroup: ", "Input/output error"}) agent.process().wait_until_says(said);
}

TEST_CASE("evictd gets no more memory (ENOMEM): the pod is dead all the same") {
  FaultScene scene;
  const auto pid = scene.agent->process().pid();
  rlimit before{};
  REQUIRE(::prlimit(pid, RLIMIT_AS, nullptr, &before) == 0);
  const rlimit none{.rlim_cur = address_space_of(pid), .rlim_max = before.rlim_max};
  REQUIRE(::prlimit(pid, RLIMIT_AS, &none, nullptr) == 0);
  scene.cross();
  scene.wait_until_dead();
  REQUIRE(::prlimit(pid, RLIMIT_AS, &before, nullptr) == 0);
  scene.wait_until_cleaned();
  scene.check();
}

TEST_SUITE_END();

}  // namespace integration::faults_kernel_test
