// systemd does not read what its services tell it: it reloads, or the machine thrashes.
#include "notify_socket.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>

#include "hostile/soon.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"

namespace integration::notify_socket_test {

using namespace std::chrono_literals;

namespace {

/// A scene whose evictd has a systemd to tell how it is, and to feed its watchdog.
struct NotifyingScene {
  testbed::WorkDirectory directory;
  NotifySocket systemd{directory.path() / "notify"};
  FaultScene scene{
      {.thresholds = {},
       .notifier = "fallbackInterval: 100ms",
       .environment = {"NOTIFY_SOCKET=" + (directory.path() / "notify").native(), "WATCHDOG_USEC=600000"}}};
};

}  // namespace

TEST_SUITE_BEGIN("hostile");

TEST_CASE("a systemd that does not read holds up neither an eviction, nor a call, nor the end of evictd") {
  NotifyingScene notifying;
  auto& [directory, systemd, scene] = notifying;
  const auto passes = scene.agent->status().passes();
  testbed::wait_until("passes go on", 30s, [&] { return scene.agent->status().passes() > passes + 25; });
  systemd.fill();
  integration::expect_hog_goes_soon(scene);
  CHECK(testbed::run({testbed::evictctl_program(), "--address", scene.agent->address(), "status"}, 10s)
            .find("evictions 1,") != std::string::npos);
  scene.agent->process().signal(SIGTERM);
  CHECK(scene.agent->process().wait(30s) == 0);
}

TEST_CASE("a systemd that reads again is told that evictd lives, and its newest state") {
  NotifyingScene notifying;
  auto& [directory, systemd, scene] = notifying;
  systemd.fill();
  integration::expect_hog_goes_soon(scene);
  scene.wait_until_cleaned();
  const auto before = systemd.count("WATCHDOG=1");  // reads all
  testbed::wait_until("the watchdog is fed again", 30s, [&] { return systemd.count("WATCHDOG=1") >= before + 2; });
  testbed::wait_until("the newest state", 30s, [&] {
    const auto& messages = systemd.messages();
    return std::ranges::any_of(messages, [](const std::string& message) {
      return message.starts_with("STATUS=") && message.find("; 1 evictions, 0 under way") != std::string::npos;
    });
  });
}

TEST_SUITE_END();

}  // namespace integration::notify_socket_test
