#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "evictctl.hpp"
#include "testbed/agent.hpp"
#include "testbed/testbed.hpp"
#include "victims.hpp"

namespace integration::explain_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

TEST_CASE("an eviction is explained: who held what before the kill, what would have saved the pod, what came back") {
  Testbed testbed{gibi_node};
  const auto chill = testbed.cri().run_pod(pod("chill", QosClass::BestEffort, {"hold", "100Mi"}));
  Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}", .notifier = "fallbackInterval: 2s"}};
  agent.wait_for_pods(1);
  // Slow enough that evictd sees it come: it looks once a second near a threshold.
  auto two = pod("hog", QosClass::BestEffort, {"grow", "300Mi", "20Mi/s"});
  two.containers.push_back({.name = "helper", .args = {"hold", "32Mi"}});
  static_cast<void>(testbed.cri().run_pod(two));
  static_cast<void>(agent.events().wait_for(Event::EXPLAINED, "default/hog", 120s));
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s));

  const auto events = agent.events().all();
  CHECK(std::ranges::count(events, Event::EXPLAINED, &Event::kind) == 1);
  const auto event = *std::ranges::find(events, Event::EXPLAINED, &Event::kind);
  CAPTURE(event.ShortDebugString());
  const auto& snapshot = event.explained().snapshot();
  const auto& age = snapshot.taken_before_kill();
  CHECK((age.seconds() > 0 || age.nanos() > 0));
  REQUIRE(snapshot.processes_size() >= 2);
  for (int i = 1; i < snapshot.processes_size(); ++i)
    CHECK(snapshot.processes(i - 1).rss() >= snapshot.processes(i).rss());
  CHECK(snapshot.processes(0).command() == "load");
  CHECK(snapshot.processes(0).anon() > 200 * mebi);
  CHECK(snapshot.processes(1).anon() < 64 * mebi);
  CHECK(snapshot.usage() > 230 * mebi);
  const auto anon = std::ranges::find(snapshot.memory(), "anon", [](const auto& row) { return row.name(); });
  REQUIRE(anon != snapshot.memory().end());
  CHECK(anon->bytes() > 200 * mebi);
  CHECK(snapshot.node_available_size() > 0);

  const auto& why = event.explained().why();
  CHECK(why.next().pod().name() == "chill");
  REQUIRE(why.has_saving_request());
  CHECK(why.saving_request() > 200 * mebi);

  const auto told = run_evictctl(testbed, {"--address", agent.address(), "explain", "default/hog"});
  CAPTURE(told.out);
  CHECK(told.code == 0);
  CHECK(told.err.empty());
  CHECK(told.out.starts_with("default/hog was evicted for memory.available on "));
  for (const auto* words : {"less than 300Mi", "next: default/chill", "a memory request of at least ", "PROCESS",
                            "memory.stat: anon ", "memory back: ", "cleaned up after "})
    CHECK(told.out.find(words) != std::string::npos);
  const auto json = run_evictctl(testbed, {"--address", agent.address(), "explain", "hog", "--json"});
  CHECK(json.code == 0);
  CHECK(json.out.find("\"savingRequest\"") != std::string::npos);
  CHECK(std::ranges::count(json.out, '\n') >= 5);

  const auto nobody = run_evictctl(testbed, {"--address", agent.address(), "explain", "default/chill"});
  CHECK(nobody.code == 1);
  CHECK(nobody.out.empty());
  CHECK(nobody.err.starts_with("evictctl: no eviction of default/chill is remembered"));
  CHECK(testbed.cri().is_running(chill));
}

TEST_CASE("a pod that grows too fast to be seen before is explained all the same, and killed no later") {
  Testbed testbed{gibi_node};
  Agent agent{testbed,
              {.thresholds = "evictionHard: {memory.available: 300Mi}", .notifier = "disable: [psi, sampler]"}};
  const Follower hog{testbed, "hog"};
  agent.wait_for_pods(1);
  hog.hold(800 * mebi);
  const auto event = agent.events().wait_for(Event::EXPLAINED, "default/hog", 60s);
  CHECK(event.explained().why().saved_by_size() == 3);
  static_cast<void>(agent.events().wait_for(Event::CLEANUP_DONE, "default/hog", 60s));
  const auto told = run_evictctl(testbed, {"--address", agent.address(), "explain", hog.running.uid});
  CHECK(told.code == 0);
  CHECK(told.out.find("What would have saved it") != std::string::npos);
}

}  // namespace integration::explain_test
