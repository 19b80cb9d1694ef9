#include "simulate/scenario.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::simulate::scenario_test {
namespace {

using namespace std::chrono_literals;
using fixture::error_of;
using fixture::operator""_GiB;
using fixture::operator""_MiB;
using fixture::value_of;
using enum core::Signal;

Scenario scenario(std::string_view text) { return value_of(parse_scenario(text, "s.yaml")); }
std::string error(std::string_view text) { return error_of(parse_scenario(text, "s.yaml")); }

/// What is wrong with the only step of a scenario with the pods "a" and "b".
std::string step_error(const std::string& step) {
  return error(
      "pods:\n- {metadata: {name: a}, spec: {containers: [{name: m}]}}\n- {metadata: {name: b}, spec: "
      "{containers: [{name: m}]}}\nsteps:\n- " +
      step);
}

}  // namespace

TEST_CASE("a scenario that says no more than it must has the kubelet's defaults") {
  const auto read = scenario("steps: []");
  CHECK(read.policy == *core::make_policy({}));
  CHECK(read.policy.thresholds.size() == 6);  // the five defaults and the allocatable copy
  CHECK_FALSE(read.own.in_flight_reclaim);
  CHECK(read.minimum_image_age == core::Duration{2min});
  CHECK(read.node.layout == core::FilesystemLayout{});
  CHECK(read.pods.empty());
  CHECK(read.steps.empty());
}

TEST_CASE("the configuration is the kubelet's and evictd's own") {
  const auto read = scenario(R"(
config:
  evictionHard: {}
  evictionSoft: {memory.available: 2Gi}
  evictionSoftGracePeriod: {memory.available: 2m}
  evictionMaxPodGracePeriod: 5
  evictionPressureTransitionPeriod: 30s
  localStorageCapacityIsolation: false
  imageMinimumGCAge: 1h
  evictd: {inFlightReclaim: true, backOff: 5m}
node: {dedicatedImageFs: true, splitContainerImageFs: true}
steps: []
)");
  REQUIRE(read.policy.thresholds.size() == 1);
  CHECK(to_string(read.policy.thresholds[0]) == "memory.available<2Gi for 2m0s");
  CHECK(read.policy.max_pod_grace_period == core::Duration{5s});
  CHECK(read.policy.pressure_transition_period == core::Duration{30s});
  CHECK_FALSE(read.policy.local_storage_isolation);
  CHECK(read.minimum_image_age == core::Duration{1h});
  CHECK(read.own.in_flight_reclaim);
  CHECK(read.node.layout == core::FilesystemLayout{.dedicated_imagefs = true, .split = true});
}

TEST_CASE("steps keep their time as it was written, and observations their timestamps") {
  const auto read = scenario(R"(
steps:
- at: 0
- at: 1m
  node:
    memory.available: {available: 1500Mi, capacity: 4Gi}
    pid.available: {available: -5, capacity: 100, time: 0s}
    nodefs.available: {available: 1Gi}
    imagefs.available: ~
)");
  REQUIRE(read.steps.size() == 2);
  CHECK(read.steps[0].at == "0");
  CHECK(read.steps[1].at == "1m");
  CHECK(read.steps[1].time == core::Instant{1min});
  const auto& observed = read.steps[1].observed;
  CHECK(observed[MemoryAvailable] == core::Observation{.available = 1500_MiB, .capacity = 4_GiB});
  CHECK(observed[PidAvailable] == core::Observation{.available = -5, .capacity = 100, .time = core::Instant{}});
  CHECK_FALSE(observed[NodefsAvailable].has_value());  // half an observation is none
  CHECK_FALSE(observed[ImagefsAvailable].has_value());
}

TEST_CASE("what a reclaim does not name stays as it was observed") {
  const auto read = scenario(R"(
steps:
- at: 0s
  node:
    memory.available: {available: 1Gi, capacity: 4Gi}
    nodefs.available: {available: 1Gi, capacity: 10Gi}
  reclaim:
    nodefs.available: {available: 5Gi, capacity: 10Gi}
)");
  const auto& after = read.steps[0].after_reclaim;
  CHECK(after[MemoryAvailable]->available == 1_GiB);
  CHECK(after[NodefsAvailable]->available == 5_GiB);
  CHECK(read.steps[0].observed[NodefsAvailable]->available == 1_GiB);
}

TEST_CASE("a step tells the node's images, and which are used") {
  const auto read = scenario(R"(
steps:
- {at: 0s}
- {at: 1s, images: [{name: b, used: true}, {name: a}]}
- {at: 2s, images: []}
)");
  CHECK_FALSE(read.steps[0].images);
  CHECK(read.steps[1].images == std::vector<core::SeenImage>{{.id = "b", .used = true}, {.id = "a"}});
  CHECK(read.steps[2].images == std::vector<core::SeenImage>{});
}

TEST_CASE("pods come and go, and are called by name or by namespace and name") {
  const auto read = scenario(R"(
pods:
- {metadata: {name: a}, spec: {containers: [{name: m}]}}
- {metadata: {name: c, namespace: x}, spec: {containers: [{name: m}]}}
steps:
- at: 0s
  add: [{metadata: {name: b, uid: u1}, spec: {containers: [{name: m}]}}]
  remove: [a, x/c]
  usage: {b: {memory: 1Gi}, default/a: {memory: 2Gi}}
  admit: [{metadata: {name: d}, spec: {containers: [{name: m}]}}]
- {at: 1s, admit: []}
)");
  CHECK(read.pods.at(0)->uid == "default/a");  // evictions under way need one
  const auto& step = read.steps.at(0);
  CHECK(step.removed == std::vector<std::string>{"default/a", "x/c"});
  CHECK(step.added.at(0)->uid == "u1");
  CHECK(step.usage.at("default/b").working_set == 1_GiB);
  CHECK(step.usage.at("default/a").working_set == 2_GiB);
  CHECK(step.admit->at(0)->name == "d");
  CHECK(read.steps.at(1).admit->empty());
}

TEST_CASE("pods are asked about as such that come, or as such that are to be resized to what their specs say") {
  const std::string resized =
      "[{metadata: {name: a}, spec: {containers: [{name: m, resources: {requests: {memory: 2Gi}}}]}, "
      "status: {containerStatuses: [{name: m, allocatedResources: {memory: 1Gi}}]}}]";
  const auto read =
      scenario("steps:\n- {at: 0s, admit: " + resized + "}\n- {at: 0s, operation: resize, admit: " + resized +
               "}\n- {at: 0s, operation: add, admit: " + resized + "}\n");
  const auto memory_in = [&](std::size_t step) {
    return read.steps.at(step).admit->at(0)->containers.at(0).resources.requests.at("memory").to_string();
  };
  CHECK(read.steps.at(0).operation == admission::Operation::Add);
  CHECK(memory_in(0) == "1Gi");
  CHECK(read.steps.at(1).operation == admission::Operation::Resize);
  CHECK(memory_in(1) == "2Gi");
  CHECK(read.steps.at(2).operation == admission::Operation::Add);
  CHECK(step_error("at: 1s\n  operation: grow") ==
        "s.yaml:6: steps[0].operation: \"grow\" where \"add\" or \"resize\" is expected");
}

TEST_CASE("what is no scenario is an error") {
  CHECK(error("") == "s.yaml: there is no scenario in it");
  CHECK(error("[]") == "s.yaml:1: a list stands where a mapping is expected");
  CHECK(error("pods: []") == "s.yaml:1: steps is missing");
  CHECK(error("steps: 5") == "s.yaml:1: steps: \"5\" stands where a list is expected");
  CHECK(error("step: []") == "s.yaml:1: step: unknown key; did you mean \"steps\"?");
  CHECK(error("steps: [").starts_with("s.yaml:"));
}

TEST_CASE("an error in the configuration names the key and the value") {
  CHECK(error("config:\n  evictionHard: {memory.available: lots}\nsteps: []") ==
        "s.yaml:2: config.evictionHard: memory.available: \"lots\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(error("config: {evictionHart: {}}\nsteps: []") ==
        "s.yaml:1: config.evictionHart: unknown key; did you mean \"evictionHard\"?");
  CHECK(error("config: {evictd: {brake: {floor: 50}}}\nsteps: []") ==
        "s.yaml:1: config.evictd.brake.floor: \"50\" is no whole percentage from 0% to 100%");
  CHECK(error("config: {evictd: {inflight: true}}\nsteps: []") ==
        "s.yaml:1: config.evictd.inflight: unknown key; those known here are inFlightReclaim, backOff, "
        "brake, hooks, trim, steerOom, explain");
  CHECK(error("node: {dedicatedImageFS: true}\nsteps: []") ==
        "s.yaml:1: node.dedicatedImageFS: unknown key; did you mean \"dedicatedImageFs\"?");
  CHECK(error("config:\n  allowedUnsafeSysctls: [vm.*]\nsteps: []") ==
        "s.yaml:2: config.allowedUnsafeSysctls[0]: the sysctls \"vm.*\" are not known to be namespaced");
  CHECK(error("config: {cpuManagerPolicy: dynamic}\nnode: {topology: {coresPerNumaNode: 4}}\nsteps: []")
            .starts_with("s.yaml:1: config: cpuManagerPolicy: "));
  CHECK(error("config: {cpuManagerPolicy: dynamic}\nsteps: []") == "no error");  // without a machine it means nothing
}

TEST_CASE("an error in a step names the step and the key") {
  CHECK(step_error("node: {}") == "s.yaml:5: steps[0]: at is missing");
  CHECK(step_error("at: 5") == "s.yaml:5: steps[0].at: \"5\" lacks a unit: write 90s or 1m30s");
  CHECK(step_error("at: -1s") == "s.yaml:5: steps[0].at: \"-1s\" lies before the start: times rise");
  CHECK(step_error("at: 2m\n- at: 1m") == "s.yaml:6: steps[1].at: \"1m\" lies before 2m: times rise");
  CHECK(step_error("at: 1s\n  nodes: {}") == "s.yaml:6: steps[0].nodes: unknown key; did you mean \"node\"?");
  CHECK(step_error("at: 1s\n  node: {memory.free: {}}") ==
        "s.yaml:6: steps[0].node: memory.free: unsupported eviction signal memory.free");
  CHECK(step_error("at: 1s\n  node: {memory.available: {available: 1Zi}}") ==
        "s.yaml:6: steps[0].node: memory.available.available: \"1Zi\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(step_error("at: 1s\n  reclaim: {memory.available: {availible: 1}}") ==
        "s.yaml:6: steps[0].reclaim: memory.available.availible: unknown key; did you mean \"available\"?");
}

TEST_CASE("an error about an image names it") {
  CHECK(step_error("at: 1s\n  images: {a: {}}") ==
        "s.yaml:6: steps[0].images: a mapping stands where a list is expected");
  CHECK(step_error("at: 1s\n  images: [{used: true}]") == "s.yaml:6: steps[0].images[0]: name is missing");
  CHECK(step_error("at: 1s\n  images: [{name: a, use: true}]") ==
        "s.yaml:6: steps[0].images[0].use: unknown key; did you mean \"used\"?");
  CHECK(step_error("at: 1s\n  images: [{name: a}, {name: b}, {name: a}]") ==
        "s.yaml:6: steps[0].images: two images are called \"a\"");
}

TEST_CASE("an error about a pod names it") {
  CHECK(step_error("at: 1s\n  usage: {z: {}}") == "s.yaml:6: steps[0].usage.z: there is no pod \"z\" so far");
  CHECK(step_error("at: 1s\n  remove: [z]") == "s.yaml:6: steps[0].remove[0]: there is no pod \"z\" so far");
  CHECK(step_error("at: 1s\n  add: [{metadata: {name: a, namespace: x}, spec: {containers: [{name: m}]}}]\n  remove: "
                   "[b]\n- at: 2s\n  remove: [a]") ==
        "s.yaml:9: steps[1].remove[0]: \"a\" may be default/a or x/a: write the namespace too");
  const std::string c = "add: [{metadata: {name: c}, spec: {containers: [{name: m}]}}]";
  CHECK(step_error("at: 1s\n  " + c + "\n- at: 2s\n  " + c) ==
        "s.yaml:8: steps[1].add: default/c is on the node already: remove it first");
  CHECK(step_error("at: 1s\n  " + c + "\n- at: 2s\n  remove: [c]\n  " + c) == "no error");
  CHECK(step_error("at: 1s\n  add: [{metadata: {name: c}}]") == "s.yaml:6: steps[0].add[0]: spec is missing");
  CHECK(error("pods:\n- {metadata: {name: a}, spec: {containers: [{name: m}]}}\n- {metadata: {name: a}, spec: "
              "{containers: [{name: m}]}}\nsteps: []") == "s.yaml:3: pods[1]: default/a stands here a second time");
  CHECK(step_error("at: 1s\n  admit:\n  - {metadata: {name: c, namespace: x}, spec: {containers: [{name: m}]}}\n  - "
                   "{metadata: {name: c, namespace: y}, spec: {containers: [{name: m}]}}") ==
        "s.yaml:6: steps[0].admit: two pods are called \"c\"");
}

TEST_CASE("an oom_score_adj that a process has chosen is one that the kernel takes") {
  const auto read = scenario(R"(
pods: [{metadata: {name: a}, spec: {containers: [{name: m}]}}]
steps: [{at: 0s, oomScoreAdj: {a: -1000}}]
)");
  CHECK(read.steps[0].oom_score_adj.at("default/a") == -1000);
  CHECK(step_error("{at: 0s, oomScoreAdj: {a: 1001}}").starts_with("s.yaml:5: steps[0].oomScoreAdj.a: "));
  CHECK(step_error("{at: 0s, oomScoreAdj: {c: 1}}") ==
        "s.yaml:5: steps[0].oomScoreAdj.c: there is no pod \"c\" so far");
}

TEST_CASE("the brake's and the hooks' keys have the agent's bounds") {
  const auto holds =
      scenario("config: {evictd: {brake: {time: 5s, headroom: 64Mi, floor: 25%}, hooks: {time: 2s}}}\nsteps: []")
          .own.holds;
  CHECK(holds.time.brake == core::Duration{5s});
  CHECK(holds.time.hooks == core::Duration{2s});
  CHECK(holds.time.floor == 0.25);
  CHECK(holds.headroom == 64_MiB);
  CHECK(error("config: {evictd: {brake: {time: 6m}}}\nsteps: []").starts_with("s.yaml:1: config.evictd.brake.time: "));
  CHECK(error("config: {evictd: {hooks: {time: -1s}}}\nsteps: []").starts_with("s.yaml:1: config.evictd.hooks.time: "));
}

}  // namespace evictd::simulate::scenario_test
