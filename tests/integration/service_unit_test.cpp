#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "fixture/documents.hpp"
#include "fixture/places.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"
#include "wake/kernel_log.hpp"

namespace integration::service_unit_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

// The unit file of tools/deploy/systemd. There is no systemd to run it here: tests/integration/confined builds its
// walls by the same means of the kernel, and systemd-analyze judges them.

namespace {

/// Up to here "OK" by systemd's own words. 10 is a service with all of root's rights.
constexpr double stated_exposure = 3.5;

std::filesystem::path unit_file() {
  return std::filesystem::path(evictd::fixture::source_root) / "tools/deploy/systemd/evictd.service";
}

/// What runs a program behind a unit's walls.
std::vector<std::string> confined(const Testbed& testbed, const std::filesystem::path& unit = unit_file()) {
  const auto script = std::filesystem::path(evictd::fixture::source_root) / "tests/integration/confined";
  return {script, unit, testbed.directory(), "--"};
}

/// The unit with the drop-in of the manual by which it watches files by fanotify.
std::filesystem::path unit_with_fanotify(const Testbed& testbed) {
  auto unit = testbed.directory() / "evictd.service";
  const auto drop_in = evictd::fixture::code_blocks_of("tools/manual/security.md", "ini").at(0).text;
  testbed::write_file(unit, testbed::read_file(unit_file()) + drop_in);
  return unit;
}

evictd::v1::WakeSource files_source(const Agent& agent) {
  const auto status = agent.status();
  const auto found = std::ranges::find(status.wake_sources(), "files", &evictd::v1::WakeSource::name);
  REQUIRE(found != status.wake_sources().end());
  return *found;
}

}  // namespace

TEST_CASE("the unit's exposure is what the manual states, by systemd's own measure") {
  Testbed testbed{{.start_containerd = false}};
  auto analyze = testbed.spawn({"systemd-analyze", "security", "--no-pager", "--offline=yes",
                                fmt::format("--threshold={}", static_cast<int>(stated_exposure * 10)), unit_file()});
  CHECK(analyze.wait(60s) == 0);
  const auto said = analyze.output();
  CAPTURE(said);
  const auto level = said.find("exposure level for evictd.service: ");
  REQUIRE(level != std::string::npos);
  CHECK(std::stod(said.substr(said.find(": ", level) + 2)) <= stated_exposure);
}

TEST_CASE("behind all of the unit's walls evictd does what it does as root") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  const auto kubelet = testbed.directory() / "kubelet";
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 300Mi}",
               .node = fmt::format("kubeletRoot: {}", kubelet.native()),
               .wrapper = confined(testbed)}};
  const std::string uid = "hog-0000-1111";
  const auto volume = kubelet / "pods" / uid / "volumes/kubernetes.io~empty-dir/cache";
  testbed::make_users_directory(volume / "own");
  const auto hog = testbed.cri().run_pod(
      {.name = "hog", .uid = uid, .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "800Mi"}}}});
  agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s);
  CHECK(testbed.node().processes(hog.cgroup).empty());
  CHECK_FALSE(std::filesystem::exists(volume));
  const bool may_read_kernel_log = evictd::wake::open_kernel_log("/dev/kmsg").has_value();
  const auto status = agent.status();
  CHECK(status.latencies_size() == 4);  // it was evictd that killed, not the runtime
  for (const auto& source : status.wake_sources()) {
    CAPTURE(source.DebugString());
    CHECK(source.state().find("failed") == std::string::npos);
    if (source.name() == "kernel-oom" && may_read_kernel_log) CHECK(source.state() == "armed");
  }
  const auto errors = agent.process().errors();
  CAPTURE(errors);
  CHECK(errors.find("ermitted") == std::string::npos);
  CHECK(errors.find("ermission") == std::string::npos);
}

TEST_CASE("behind the unit's walls the oom_score_adj of another user's process may be raised (protection.steerOom)") {
  Testbed testbed{{.start_containerd = false}};
  const auto others = testbed.spawn({"setpriv", "--reuid=65534", "--clear-groups", "sleep", "600"});
  const auto file = fmt::format("/proc/{}/oom_score_adj", others.pid());
  // The file is of the user only once setpriv has become sleep.
  testbed::wait_until("the process is another user's", 10s,
                      [&] { return testbed::read_file(fmt::format("/proc/{}/comm", others.pid())) == "sleep\n"; });
  auto command = confined(testbed);
  command.insert(command.end(), {"/bin/sh", "-c", "echo 700 > " + file});
  testbed::run(command);
  CHECK(testbed::read_file(file) == "700\n");
}

TEST_CASE("with the drop-in that the manual has for it, one fanotify mark tells what pods write") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  const auto kubelet = testbed.directory() / "kubelet";
  const std::string uid = "writer-0000-1111";
  const auto volume = kubelet / "pods" / uid / "volumes/kubernetes.io~empty-dir/data";
  std::filesystem::create_directories(volume);
  const Agent agent{testbed,
                    {.thresholds = "evictionHard: {memory.available: 100Mi}",
                     .node = fmt::format("kubeletRoot: {}", kubelet.native()),
                     .wrapper = confined(testbed, unit_with_fanotify(testbed))}};
  const auto writer = testbed.cri().run_pod({.name = "writer", .uid = uid, .containers = {{.args = {"hold", "4Mi"}}}});
  agent.wait_for_pod(uid);
  testbed::wait_until("its files are watched", 60s, [&] { return files_source(agent).state() == "armed"; });
  CHECK(files_source(agent).detail().starts_with("fanotify"));
  testbed::write_file(volume / "file", "written");
  testbed::wait_until("evictd is told", 60s, [&] { return files_source(agent).wake_ups() > 0; });
}

}  // namespace integration::service_unit_test
