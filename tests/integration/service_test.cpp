#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "notify_socket.hpp"
#include "testbed/agent.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::service_test {

using namespace std::chrono_literals;
using testbed::Agent;
using testbed::Testbed;

TEST_CASE("systemd is told READY after the first pass, the state, the watchdog's heartbeat, and STOPPING") {
  Testbed testbed{{.node = {.memory_limit = 1 << 30}}};
  NotifySocket systemd{testbed.directory() / "notify"};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 100Mi}",
               .environment = {"NOTIFY_SOCKET=" + (testbed.directory() / "notify").native(), "WATCHDOG_USEC=300000"}}};
  testbed::wait_until("READY=1", 30s, [&] { return systemd.count("READY=1") == 1; });
  CHECK(agent.status().passes() >= 1);
  // The state waits until systemd has read what matters more.
  testbed::wait_until("the state", 30s, [&] { return systemd.count("STATUS=no pressure; ") >= 1; });
  CHECK_FALSE(systemd.messages().front().starts_with("STATUS="));
  testbed::wait_until("the watchdog is fed again and again", 30s, [&] { return systemd.count("WATCHDOG=1") >= 5; });

  agent.process().signal(SIGSTOP);
  const auto fed = systemd.count("WATCHDOG=1");
  CHECK_FALSE(testbed::comes_true(500ms, [&] { return systemd.count("WATCHDOG=1") > fed + 1; }));
  agent.process().signal(SIGCONT);
  agent.process().signal(SIGTERM);
  CHECK(agent.process().wait(30s) == 0);
  CHECK(systemd.count("STOPPING=1") == 1);
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
  agent.process().wait_until_says("memory.available: ");
  const auto errors = agent.process().errors();
  const auto first = errors.find("memory.available: ");
  CHECK(errors.find("ermission denied", first) != std::string::npos);
  CHECK(errors.find("memcg: memory.available", first + 1) == std::string::npos);
}

TEST_SUITE_END();

}  // namespace integration::service_test
