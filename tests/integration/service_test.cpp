#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "testbed/agent.hpp"
#include "testbed/descriptor.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
using testbed::Agent;
using testbed::Testbed;

namespace {

/// The socket that systemd would give a service to tell how it is (sd_notify(3)).
class NotifySocket {
 public:
  explicit NotifySocket(const std::filesystem::path& path) : socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.native().copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }

  /// All messages so far.
  const std::vector<std::string>& messages() {
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto size = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size < 0) return messages_;
      messages_.emplace_back(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  std::ptrdiff_t count(std::string_view message) {
    return std::ranges::count_if(messages(), [&](const std::string& known) { return known.starts_with(message); });
  }

 private:
  testbed::Descriptor socket_;
  std::vector<std::string> messages_;
};

}  // namespace

TEST_CASE("systemd is told READY after the first pass, the state, the watchdog's heartbeat, and STOPPING") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  NotifySocket systemd{testbed.directory() / "notify"};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}",
               .environment = {"NOTIFY_SOCKET=" + (testbed.directory() / "notify").native(), "WATCHDOG_USEC=300000"}}};
  testbed::wait_until("READY=1", 30s, [&] { return systemd.count("READY=1") == 1; });
  CHECK(agent.status().passes() >= 1);
  CHECK(systemd.count("STATUS=no pressure; ") >= 1);
  CHECK(systemd.messages().front().starts_with("STATUS="));  // the first pass, then READY
  testbed::wait_until("the watchdog is fed again and again", 30s, [&] { return systemd.count("WATCHDOG=1") >= 5; });

  agent.process().signal(SIGSTOP);
  const auto fed = systemd.count("WATCHDOG=1");
  CHECK_FALSE(testbed::comes_true(500ms, [&] { return systemd.count("WATCHDOG=1") > fed + 1; }));
  agent.process().signal(SIGCONT);
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(30s) == 0);
  CHECK(systemd.count("STOPPING=1") == 1);
}

TEST_CASE("a second agent on the same socket refuses, the first serves on") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 100Mi}"}};
  auto second = testbed.spawn({testbed::evictd_program(), "run", "--config", testbed.directory() / "agent.yaml",
                               "--kubelet-config", testbed.directory() / "kubelet.yaml"});
  CHECK(second.wait(30s) == 1);
  CHECK(second.errors().find("another") != std::string::npos);
  CHECK(agent.status().passes() >= 1);
}

TEST_SUITE_BEGIN("cgroup v1");

TEST_CASE("without the right to register thresholds evictd says so once and guards on by its timer") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  testbed::run({"chmod", "0777", testbed.directory()});
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}",
               .notifier = "fallbackInterval: 200ms",
               .wrapper = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"},
               .wait_until_ready = false}};
  agent.events().wait_for(evictd::v1::Event::SOURCE_DEGRADED, "", 30s);
  testbed::wait_until("passes go on", 30s, [&] { return agent.status().passes() >= 5; });
  const auto errors = agent.process().errors();
  const auto first = errors.find("memory.available: ");
  REQUIRE(first != std::string::npos);
  CHECK(errors.find("ermission denied", first) != std::string::npos);
  CHECK(errors.find("memcg: memory.available", first + 1) == std::string::npos);
}

TEST_SUITE_END();
