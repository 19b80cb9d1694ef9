// evictd ends in the middle of an eviction, and systemd starts the next one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "node.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace node_suite::restart_test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;

namespace {

std::ptrdiff_t count_of(Node& node, Event::Kind kind, const std::string& pod) {
  return std::ranges::count_if(node.events().all(), [&](const Event& event) {
    return event.kind() == kind && testbed::key(event.pod()) == pod;
  });
}

/// What the next evictd has to do with the eviction: finish it, and tell each step once.
void check_finished(Node& node, const testbed::RunningPod& pod) {
  const auto name = "default/" + pod.name;
  node.events().wait_for(Event::CLEANUP_DONE, name, 120s);
  CHECK(count_of(node, Event::EVICTION_INTENDED, name) == 1);
  CHECK(count_of(node, Event::CONTAINERS_KILLED, name) == 1);
  CHECK(count_of(node, Event::CLEANUP_DONE, name) == 1);
  CHECK(Node::left_of(pod) == "");
}

}  // namespace

TEST_CASE("a restart in the middle of a soft eviction: the next evictd finishes it") {
  Node node;
  node.set_thresholds(fmt::format(R"(evictionHard: {{memory.available: 64Mi}}
evictionSoft: {{memory.available: {}Mi}}
evictionSoftGracePeriod: {{memory.available: 1s}}
)",
                                  node.available("memory.available") / mebi - 200));
  const auto hog = node.run(pod("hog-restart", QosClass::BestEffort, {"--ignore-term", "hold", "300Mi"}));
  node.events().wait_for(Event::EVICTION_INTENDED, "default/hog-restart", 120s);
  const auto first = main_pid();
  testbed::run({"systemctl", "restart", "evictd"}, 2min);
  CHECK(main_pid() != first);
  node.reconnect();
  check_finished(node, hog);
}

TEST_CASE("SIGKILL in the middle of a hard eviction: the next one finishes it, and counts what was back before") {
  Node node;
  node.set_thresholds(
      fmt::format("evictionHard: {{memory.available: {}Mi}}", node.available("memory.available") / mebi - 300));
  const auto hog = node.run(pod("hog-killed", QosClass::BestEffort, {"hold", "500Mi"}));
  node.events().wait_for(Event::EVICTION_INTENDED, "default/hog-killed", 120s);
  const auto first = main_pid();
  ::kill(first, SIGKILL);
  wait_for_successor(first);
  node.reconnect();
  check_finished(node, hog);
  const auto released = node.events().wait_for(Event::MEMORY_RELEASED, "default/hog-killed", 60s);
  CHECK(released.memory_released().released_bytes() > 250 * mebi);
}

TEST_CASE("what has ended leaves no fence, and where there was none no time is spent on it") {
  Node node;
  const auto first = main_pid();
  ::kill(first, SIGKILL);
  wait_for_successor(first);
  CHECK(journal({"--output=cat"}).find("has no fence") == std::string::npos);  // as "evictd disarm" would have said

  // Nobody comes after it.
  const fs::path override = "/run/systemd/system/evictd.service.d/once.conf";
  fs::create_directories(override.parent_path());
  testbed::write_file(override, "[Service]\nRestart=no\n");
  testbed::run({"systemctl", "daemon-reload"});
  node.configure("notifier: {v2: fence}");
  node.set_thresholds("evictionHard: {memory.available: 200Mi}");
  const auto high = Slices::directory("kubepods.slice") / "memory.high";
  testbed::wait_until("the fence stands", 60s, [&] { return testbed::read_file(high) != "max\n"; });
  CHECK(fs::exists("/run/evictd/fence"));
  ::kill(main_pid(), SIGKILL);
  testbed::wait_until("the service has failed", 60s, [] { return property("ActiveState") == "failed"; });
  CHECK(testbed::read_file(high) == "max\n");
  CHECK_FALSE(fs::exists("/run/evictd/fence"));

  fs::remove_all(override.parent_path());
  testbed::run({"systemctl", "daemon-reload"});
  node.configure("");
}

}  // namespace node_suite::restart_test
