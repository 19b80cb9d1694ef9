// The service as its package installs it, under the real systemd.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <string>

#include "node.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace node_suite::service_test {

using namespace std::chrono_literals;

namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// "CapBnd" of /proc/PID/status.
std::string of_process(pid_t pid, const std::string& key) {
  const auto status = testbed::read_file(fmt::format("/proc/{}/status", pid));
  const auto begin = status.find("\n" + key + ":\t");
  REQUIRE(begin != std::string::npos);
  const auto value = begin + key.size() + 3;
  return status.substr(value, status.find('\n', value) - value);
}

}  // namespace

TEST_CASE("installing the package has started the service, and systemd was told that it is ready") {
  CHECK(property("ActiveState") == "active");
  CHECK(property("SubState") == "running");
  CHECK(property("NRestarts") == "0");
  CHECK(property("UnitFileState") == "enabled");
  CHECK(contains(property("StatusText"), "of memory available"));
  const Node node;
  CHECK(node.status().runtime().name() == "containerd");
  CHECK(node.status().runtime().version().starts_with("1.7.24"));
}

TEST_CASE("the sandbox of the unit stands around the process, and systemd-analyze finds little exposed") {
  const auto pid = main_pid();
  // KILL, DAC_READ_SEARCH, DAC_OVERRIDE, CHOWN, SYS_RESOURCE, SYSLOG.
  constexpr std::uint64_t given = 1U << 5 | 1U << 2 | 1U << 1 | 1U << 0 | 1U << 24 | std::uint64_t{1} << 34;
  CHECK(of_process(pid, "CapBnd") == fmt::format("{:016x}", given));
  CHECK(of_process(pid, "CapEff") == of_process(pid, "CapBnd"));
  CHECK(of_process(pid, "NoNewPrivs") == "1");
  CHECK(of_process(pid, "Seccomp") == "2");
  CHECK(testbed::read_file(fmt::format("/proc/{}/oom_score_adj", pid)) == "-999\n");
  const auto mounts = testbed::read_file(fmt::format("/proc/{}/mountinfo", pid));
  CHECK(contains(mounts, " / / ro,"));
  const auto exposure = testbed::run({"systemd-analyze", "security", "--no-pager", "evictd.service"});
  MESSAGE(exposure);
  CHECK(contains(exposure, "OK"));
}

TEST_CASE("the self-test has a place behind the sandbox, also in the place of an evictd that was killed") {
  Node node;
  const auto passes = [&] {
    const auto status = node.status();
    for (const auto& source : status.wake_sources()) {
      if (!source.name().starts_with("self-test")) continue;
      CHECK(source.name() == "self-test /system.slice/evictd.service/evictd-probe");
      CHECK(source.state() == "armed");
      return contains(source.detail(), "the last one told after");
    }
    return false;
  };
  testbed::wait_until("a self-test has passed", 60s, passes);
  const auto first = main_pid();
  REQUIRE(::kill(first, SIGKILL) == 0);
  wait_for_successor(first);
  node.reconnect();
  testbed::wait_until("a self-test of the next one has passed", 60s, passes);
}

TEST_CASE("systemd's watchdog is fed") {
  CHECK(property("WatchdogUSec") == "10s");
  const auto fed = property("WatchdogTimestampMonotonic");
  testbed::wait_until("it is fed again", 30s, [&] { return property("WatchdogTimestampMonotonic") != fed; });
}

TEST_CASE("a process that is stopped is ended by the watchdog, and the next one serves") {
  const auto stuck = main_pid();
  REQUIRE(::kill(stuck, SIGSTOP) == 0);
  wait_for_successor(stuck);
  Node node;
  CHECK(node.status().runtime().connected());
  CHECK(contains(journal({"--grep", "Watchdog timeout"}), "Watchdog timeout"));
}

}  // namespace node_suite::service_test
