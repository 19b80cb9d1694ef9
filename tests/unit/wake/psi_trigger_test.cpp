#include "wake/psi_trigger.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <filesystem>
#include <thread>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"
#include "wake/heard_sources.hpp"

namespace evictd::wake::psi_trigger_test {
namespace {

using namespace std::chrono_literals;

/// A few processes that always want to run: stalls for the processor, of which PSI tells just as of memory.
class Crowd {
 public:
  Crowd() {
    for (unsigned i = 0; i < 3 * std::thread::hardware_concurrency(); ++i)
      if (const auto pid = ::fork(); pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::getppid();
      } else {
        pids_.push_back(pid);
      }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (const auto pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> pids_;
};

PsiPlace machine(std::string file) {
  return {"the machine", [] { return os::Directory::open("/proc"); }, std::move(file)};
}

bool has_psi() { return ::geteuid() == 0 && ::access("/proc/pressure/cpu", R_OK | W_OK) == 0; }

struct Loop : test::HeardSources, FastPolling {
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::vector<core::Duration> hurries;

  Loop() { wakes.listen(*this); }
  void poll_fast(core::Duration window) override { hurries.push_back(window); }
  PsiTrigger trigger(PsiPlace place, std::vector<PsiLevel> levels) {
    return {reactor.get_executor(), wakes, std::move(place), std::move(levels), this};
  }
};

}  // namespace

TEST_CASE("a level is written in microseconds, and read by people") {
  const PsiLevel level{.full = true, .stall = 50ms, .window = 500ms};
  CHECK(level.command() == "full 50000 500000");
  CHECK(level.text() == "full 50ms in 500ms");
  CHECK(PsiLevel{.stall = 1ns, .window = 1s}.command() == "some 1 1000000");
}

TEST_CASE("without privilege a window becomes the next multiple of 2 s, and the stall keeps its part of it") {
  const auto unprivileged = [](core::Duration stall, core::Duration window) {
    return PsiLevel{.stall = stall, .window = window}.without_privilege();
  };
  CHECK(unprivileged(50ms, 500ms) == PsiLevel{.stall = 200ms, .window = 2s});
  CHECK(unprivileged(1s, 2s) == PsiLevel{.stall = 1s, .window = 2s});
  CHECK(unprivileged(1s, 2500ms) == PsiLevel{.stall = 1600ms, .window = 4s});
  CHECK(unprivileged(3s, 3s) == PsiLevel{.stall = 4s, .window = 4s});
  CHECK(unprivileged(10s, 10s) == PsiLevel{.stall = 10s, .window = 10s});
  CHECK(unprivileged(9s, 9001ms).window == 10s);
}

TEST_CASE("a stall wakes a pass, says which, and hurries the others for one window") {
  SKIP_UNLESS(has_psi(), "not root, or a kernel without PSI");
  Loop loop;
  auto psi = loop.trigger(machine("pressure/cpu"), {{.stall = 1ms, .window = 500ms}});
  psi.arm({});
  const auto status = psi.status().at(0);
  CHECK(status.name == "psi the machine");
  CHECK(status.state.starts_with("armed"));
  const bool whole_windows = status.state.find("CAP_SYS_RESOURCE") != std::string::npos;
  const core::Duration window = whole_windows ? 2s : 500ms;
  CHECK(status.detail == (whole_windows ? "some 4ms in 2s" : "some 1ms in 500ms"));

  const Crowd crowd;
  for (int second = 0; second < 60 && psi.status().at(0).wakes < 2; ++second) {
    loop.reactor.restart();
    loop.reactor.run_for(1s);
  }
  CHECK(psi.status().at(0).wakes >= 2);
  CHECK(loop.failures.empty());
  REQUIRE_FALSE(loop.hurries.empty());
  CHECK(loop.hurries[0] == window);
}

TEST_CASE("where the kernel has no PSI that is said once, and everything goes on") {
  const fixture::Tree tree;
  Loop loop;
  auto psi = loop.trigger({"/pods", [&] { return os::Directory::open(tree.path()); }, "memory.pressure"},
                          {{.stall = 50ms, .window = 500ms}});
  for (int i = 0; i < 3; ++i) psi.arm({});
  CHECK(loop.failures ==
        std::vector<std::string>{"PSI is off; boot with psi=1: " + tree.path("memory.pressure").native() +
                                 ": No such file or directory"});
  CHECK(psi.status().at(0).state.starts_with("failed: PSI is off"));
}

TEST_CASE("a cgroup that is not there yet is waited for") {
  const fixture::Tree tree;
  Loop loop;
  auto psi = loop.trigger({"/pods", [&] { return os::Directory::open(tree.path("pods")); }, "memory.pressure"},
                          {{.stall = 50ms, .window = 500ms}});
  psi.arm({});
  CHECK(loop.failures.empty());
  CHECK(psi.status().at(0).state == "waiting: no such cgroup");
}

TEST_CASE("a trigger that the kernel refuses is in no other one's way") {
  SKIP_UNLESS(has_psi(), "not root, or a kernel without PSI");
  Loop loop;
  // A stall cannot be longer than its window.
  auto psi = loop.trigger(machine("pressure/memory"), {{.stall = 9s, .window = 2s}, {true, 2s, 2s}});
  psi.arm({});
  psi.arm({});
  CHECK(loop.failures == std::vector<std::string>{"/proc/pressure/memory: Invalid argument"});
  const auto is_open = [](const auto& entry) {
    std::error_code gone;
    return std::filesystem::read_symlink(entry.path(), gone) == "/proc/pressure/memory";
  };
  CHECK(std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"), is_open) == 1);
}

TEST_CASE("arming again and again opens nothing twice") {
  SKIP_UNLESS(has_psi(), "not root, or a kernel without PSI");
  Loop loop;
  auto psi = loop.trigger(machine("pressure/memory"), {{.stall = 2s, .window = 2s}, {true, 2s, 2s}});
  psi.arm({});
  const auto free = ::dup(0);
  ::close(free);
  for (int i = 0; i < 100; ++i) psi.arm({});
  const auto still_free = ::dup(0);
  ::close(still_free);
  CHECK(still_free == free);
}

}  // namespace evictd::wake::psi_trigger_test
