#include "fault_scene.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <thread>
#include <utility>

#include "history.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
using evictd::core::QosClass;
using testbed::Event;

namespace integration {
namespace {

std::size_t threads_of(pid_t pid) {
  const auto tasks = std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid));
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace

FaultScene::FaultScene(testbed::Agent::Options options, testbed::Testbed::Options node) : testbed{std::move(node)} {
  chill = testbed.cri().run_pod(pod("chill", QosClass::Burstable, {"hold", "100Mi"}));
  vital = testbed.cri().run_pod(pod("vital", QosClass::BestEffort, {"hold", "150Mi"}, 2'000'000'000));
  options.thresholds = "evictionHard: {memory.available: 300Mi}";
  options.keep_history = true;
  agent.emplace(testbed, options);
  hog.emplace(testbed, "hog");
  agent->wait_for_pods(3);
  settle();
  files = agent->open_files();
  threads = threads_of(agent->process().pid());
}

void FaultScene::wait_until_dead() {
  testbed::wait_until("the hog's processes are dead", long_enough,
                      [&] { return !has_processes(testbed, hog->running); });
}

void FaultScene::wait_until_cleaned() { agent->events().wait_for(Event::CLEANUP_DONE, "default/hog", long_enough); }

void FaultScene::check_victims() {
  testbed::wait_until("nothing is under way", long_enough, [&] { return agent->status().in_flight().empty(); });
  CHECK(testbed.cri().is_running(chill));
  CHECK(testbed.cri().is_running(vital));
  for (const auto& event : history(*agent))
    if (event.eviction_id() != 0) CHECK(testbed::key(event.pod()) == "default/hog");
}

void FaultScene::check() {
  check_victims();
  CHECK(nothing_left(testbed, hog->running));
  const auto events = history(*agent);
  CHECK(count(events, Event::EVICTION_INTENDED, "default/hog") == 1);
  CHECK(count(events, Event::CONTAINERS_KILLED, "default/hog") == 1);
  CHECK(count(events, Event::MEMORY_RELEASED, "default/hog") == 1);
  CHECK(count(events, Event::CLEANUP_DONE, "default/hog") == 1);
  settle();
  CHECK(testbed::comes_true(30s, [&] { return agent->open_files() <= files; }));
  CHECK(threads_of(agent->process().pid()) <= threads + 2);  // gRPC lets go of its own at its leisure
}

void FaultScene::settle() { std::this_thread::sleep_for(1s); }

}  // namespace integration
