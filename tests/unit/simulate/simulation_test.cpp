#include "simulate/simulation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>

#include "config/yaml.hpp"
#include "fixture/places.hpp"
#include "fixture/program.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace json = boost::json;

namespace evictd::simulate::simulation_test {
namespace {

using fixture::value_of;

/// Where the result is not what is expected: keys that the expectation lacks do not matter, nor does the order of a
/// step's conditions.
void compare(const json::value& expected, const json::value& actual, const std::string& path,
             std::vector<std::string>& differences) {
  if (const auto* object = expected.if_object(); object != nullptr && actual.is_object()) {
    for (const auto& [key, value] : *object) {
      const auto* found = actual.get_object().if_contains(key);
      const auto name = path + "." + std::string(key);
      found == nullptr ? differences.push_back(name + " is missing") : compare(value, *found, name, differences);
    }
    return;
  }
  const auto* list = expected.if_array();
  if (list == nullptr || !actual.is_array() || list->size() != actual.get_array().size()) {
    if (expected != actual)
      differences.push_back(path + " is " + json::serialize(actual) + ", not " + json::serialize(expected));
    return;
  }
  const auto by_text = [](const json::value& a, const json::value& b) {
    return json::serialize(a) < json::serialize(b);
  };
  auto wanted = *list;
  auto given = actual.get_array();
  if (path.ends_with(".conditions")) {
    std::ranges::sort(wanted, by_text);
    std::ranges::sort(given, by_text);
  }
  for (std::size_t i = 0; i < wanted.size(); ++i)
    compare(wanted[i], given[i], path + "[" + std::to_string(i) + "]", differences);
}

std::vector<std::filesystem::path> scenarios() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(fixture::source_root) / "tests/scenarios"))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

json::array run(std::string_view text) { return replay(value_of(parse_scenario(text, "s.yaml"))); }

/// A node of 4 GiB with a hard memory threshold of 1 GiB; the pods a and b, and what is said of the steps.
json::array memory_scenario(const std::string& steps, const std::string& config = "") {
  return run("config: {evictionHard: {memory.available: 1Gi}" + config + R"(}
pods:
- {metadata: {name: a}, spec: {containers: [{name: main}]}}
- {metadata: {name: b}, spec: {containers: [{name: main}]}}
steps:
)" + steps);
}

/// A node with the images "b" and "a", of which "a" is in use, and the pods "large" and "small". nodefs is short in
/// each of three passes, and would have enough once something is reclaimed.
json::array image_scenario(const std::string& config, const std::string& node = "") {
  return run("config: {evictionHard: {nodefs.available: 1Gi}" + config + "}\nnode: {" + node + R"(}
pods:
- {metadata: {name: large}, spec: {containers: [{name: main}]}}
- {metadata: {name: small}, spec: {containers: [{name: main}]}}
steps:
- at: 0s
  images: [{name: b}, {name: a, used: true}]
  node: &short {nodefs.available: {available: 500Mi, capacity: 4Gi}}
  reclaim: &enough {nodefs.available: {available: 2Gi, capacity: 4Gi}}
  usage: {large: {logs: 2Gi}, small: {logs: 1Gi}}
- {at: 2m, node: *short, reclaim: *enough, usage: {small: {logs: 1Gi}}, remove: [large]}
- {at: 3m, node: *short, reclaim: *enough, usage: {small: {logs: 1Gi}}}
)");
}

}  // namespace

TEST_CASE("every scenario comes out as expected from the real program") {
  const auto paths = scenarios();
  CHECK(paths.size() >= 12);
  for (const auto& path : paths) {
    CAPTURE(path.string());
    const auto outcome = fixture::run_evictd({"simulate", path.string()});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    auto expectation = path;
    const auto expected = value_of(config::read_text_file(expectation.replace_extension(".expect.json")));
    std::vector<std::string> differences;
    compare(json::parse(expected), json::parse(outcome.out), "", differences);
    for (const auto& difference : differences) FAIL_CHECK(difference);
  }
}

TEST_CASE("a step in which nothing happens says so") {
  CHECK(run("steps: [{at: 0s}]") ==
        json::parse(R"([{"at": "0s", "conditions": [], "evicted": null, "reclaimed": []}])"));
}

TEST_CASE("an eviction is told with its message, and the ranking of all pods") {
  const auto steps = memory_scenario(R"(
- at: 0s
  node: {memory.available: {available: 500Mi, capacity: 4Gi}}
  usage: {a: {memory: 1Gi}, b: {memory: 2Gi}}
)");
  CHECK(steps == json::parse(R"([{
    "at": "0s", "conditions": ["MemoryPressure"],
    "evicted": {"pod": "default/b", "gracePeriodSeconds": 0, "signal": "memory.available",
      "message": "The node was low on resource: memory. Threshold quantity: 1Gi, available: 500Mi. Container main was using 2Gi, request is 0, has larger consumption of memory. "},
    "reclaimed": [], "ranking": ["default/b", "default/a"]}])"));
}

TEST_CASE("pods that were ranked are told even if nobody may go") {
  const auto steps = run(R"(
config: {evictionHard: {memory.available: 1Gi}}
pods: [{metadata: {name: a}, spec: {priority: 2000000000, containers: [{name: main}]}}]
steps: [{at: 0s, node: {memory.available: {available: 0, capacity: 4Gi}}}]
)");
  CHECK(steps.at(0).at("evicted").is_null());
  CHECK(steps.at(0).at("ranking") == json::parse(R"(["default/a"])"));
}

TEST_CASE("an evicted pod stays until it is removed, and the next pass evicts it again as the kubelet would") {
  const auto steps = memory_scenario(R"(
- {at: 0s, node: {memory.available: {available: 0, capacity: 4Gi}}, usage: {a: {memory: 2Gi}, b: {memory: 1Gi}}}
- {at: 1s, node: {memory.available: {available: 0, capacity: 4Gi}}, usage: {a: {memory: 2Gi}, b: {memory: 1Gi}}}
- {at: 2s, node: {memory.available: {available: 0, capacity: 4Gi}}, usage: {b: {memory: 1Gi}}, remove: [a]}
)");
  CHECK(steps.at(0).at("evicted").at("pod") == "default/a");
  CHECK(steps.at(1).at("evicted").at("pod") == "default/a");
  CHECK(steps.at(2).at("evicted").at("pod") == "default/b");
}

TEST_CASE("with reclaim counted in flight, a victim is waited for while its memory suffices") {
  const auto steps = memory_scenario(R"(
- {at: 0s, node: {memory.available: {available: 0, capacity: 4Gi}}, usage: {a: {memory: 2Gi}, b: {memory: 1Gi}}}
- {at: 1s, node: {memory.available: {available: 0, capacity: 4Gi}}, usage: {a: {memory: 2Gi}, b: {memory: 1Gi}}}
- {at: 2s, node: {memory.available: {available: 500Mi, capacity: 4Gi}}, usage: {a: {memory: 100Mi}, b: {memory: 1Gi}}}
- {at: 3s, node: {memory.available: {available: 2Gi, capacity: 4Gi}}, usage: {b: {memory: 1Gi}}, remove: [a]}
)",
                                     ", evictd: {inFlightReclaim: true}");
  CHECK(steps.at(0).at("evicted").at("pod") == "default/a");
  CHECK(steps.at(1).at("evicted").is_null());
  CHECK(steps.at(2).at("evicted").at("pod") == "default/b");  // what a still holds does not make up for it
  CHECK(steps.at(3).at("evicted").is_null());
}

TEST_CASE(
    "with reclaim counted in flight, a pod with time to stop hurries while it has it, and is waited for after it") {
  const std::string soft =
      ", evictionSoft: {memory.available: 2Gi}, evictionSoftGracePeriod: {memory.available: 1s}, "
      "evictionMaxPodGracePeriod: 10, evictd: {inFlightReclaim: true}";
  const auto step = [](const std::string& at, const std::string& available) {
    return "- {at: " + at + ", node: {memory.available: {available: " + available +
           ", capacity: 4Gi}}, usage: {a: {memory: 2Gi}, b: {memory: 1Gi}}}\n";
  };
  const auto begun = "\n" + step("0s", "1536Mi") + step("1s", "1536Mi");
  const auto hurried = memory_scenario(begun + step("10s", "512Mi"), soft);
  CHECK(hurried.at(1).at("evicted").at("gracePeriodSeconds") == 10);
  CHECK(hurried.at(2).at("evicted").at("pod") == "default/a");
  const auto dead = memory_scenario(begun + step("11s", "512Mi"), soft);
  CHECK(dead.at(1).at("evicted").at("gracePeriodSeconds") == 10);
  CHECK(dead.at(2).at("evicted").is_null());
}

TEST_CASE("where images are told, a reclaim frees something only if one of them may go, and it is gone from then on") {
  const auto steps = image_scenario("");  // imageMinimumGCAge is 2m
  CHECK(steps.at(0).at("reclaimed") == json::parse(R"(["containers", "images"])"));
  CHECK(steps.at(0).at("imagesRemoved") == json::array{});
  CHECK(steps.at(0).at("evicted").at("pod") == "default/large");
  CHECK(steps.at(1).at("imagesRemoved") == json::array{"b"});
  CHECK(steps.at(1).at("evicted").is_null());
  CHECK(steps.at(2).at("imagesRemoved") == json::array{});
  CHECK(steps.at(2).at("evicted").at("pod") == "default/small");
}

TEST_CASE("with a negative age every image may go that is not used") {
  const auto steps = image_scenario(", imageMinimumGCAge: -1s");
  CHECK(steps.at(0).at("imagesRemoved") == json::array{"b"});
  CHECK(steps.at(0).at("evicted").is_null());
  CHECK(steps.at(1).at("imagesRemoved") == json::array{});
}

TEST_CASE("images that a pass does not want to remove are not told, and do not matter to what it frees") {
  const auto steps = image_scenario("", "dedicatedImageFs: true, splitContainerImageFs: true");
  for (const auto& step : steps) {
    CHECK(step.at("reclaimed") == json::array{"containers"});
    CHECK_FALSE(step.as_object().contains("imagesRemoved"));
    CHECK(step.at("evicted").is_null());
  }
}

TEST_CASE("where no images are told, a reclaim frees what the step says") {
  const auto steps = run(R"(
config: {evictionHard: {nodefs.available: 1Gi}}
pods: [{metadata: {name: a}, spec: {containers: [{name: main}]}}]
steps:
- at: 0s
  node: {nodefs.available: {available: 500Mi, capacity: 4Gi}}
  reclaim: {nodefs.available: {available: 2Gi, capacity: 4Gi}}
  usage: {a: {logs: 2Gi}}
)");
  CHECK(steps == json::parse(R"([{"at": "0s", "conditions": ["DiskPressure"], "evicted": null,
    "reclaimed": ["containers", "images"]}])"));
}

TEST_CASE("admission is tested against the conditions after the pass, and without conditions everyone is admitted") {
  const auto steps = memory_scenario(R"(
- {at: 0s, admit: [{metadata: {name: c}, spec: {containers: [{name: m}]}}]}
- at: 1s
  node: {memory.available: {available: 0, capacity: 4Gi}}
  admit: [{metadata: {name: c}, spec: {containers: [{name: m}]}}]
)");
  CHECK(steps.at(0).at("admit") == json::parse(R"({"c": {"admitted": true, "reason": "", "message": "",
    "handler": "", "preempted": []}})"));
  CHECK(steps.at(1).at("admit") == json::parse(R"({"c": {"admitted": false, "reason": "Evicted",
    "message": "The node had condition: [MemoryPressure]. ", "handler": "eviction", "preempted": []}})"));
}

TEST_CASE("who goes for a critical pod is told, and stays for the pods that are asked for next") {
  const auto steps = run(R"(
node: {allocatable: {memory: 1Gi}}
pods:
- {metadata: {name: a}, spec: {containers: [{name: m, resources: {requests: {memory: 1Gi}}}]}}
- {metadata: {name: done}, spec: {containers: [{name: m, resources: {requests: {memory: 1Gi}}}]}, status: {phase: Failed}}
steps:
- at: 0s
  admit:
  - {metadata: {name: b}, spec: {priority: 2000000000, containers: [{name: m, resources: {requests: {memory: 1Gi}}}]}}
  - {metadata: {name: c}, spec: {priority: 2000000000, containers: [{name: m, resources: {requests: {memory: 1}}}]}}
  - {metadata: {name: a}, spec: {containers: [{name: m, resources: {requests: {memory: 1Gi}}}]}}
)");
  const auto& admit = steps.at(0).at("admit");
  CHECK(admit.at("b").at("preempted") == json::parse(R"(["default/a"])"));
  CHECK(admit.at("c").at("preempted") == json::parse(R"(["default/a"])"));
  CHECK(admit.at("a").at("admitted").as_bool());  // it is not in its own way
}

TEST_CASE("while others are asked a braked pod need not work, and has its two seconds after that") {
  const auto steps = memory_scenario(R"(
- {at: 0s, node: &node {memory.available: {available: 900Mi, capacity: 4Gi}}, usage: &usage {a: {memory: 2Gi}, b: {memory: 1Gi}}}
- {at: 2900ms, idle: [a], node: *node, usage: *usage}
- {at: 3s, idle: [a], node: *node, usage: *usage}
- {at: 4900ms, idle: [a], node: *node, usage: *usage}
- {at: 5s, idle: [a], node: *node, usage: *usage}
)",
                                     ", evictd: {inFlightReclaim: true, brake: {time: 1m}, hooks: {time: 3s}}");
  for (std::size_t i = 0; i < 4; ++i) CHECK(steps.at(i).at("ended") == json::array{});
  CHECK(steps.at(4).at("ended") ==
        json::parse(
            R"([{"pod": "default/a", "after": "5s", "how": "killed: for 2s it neither shrank nor did anything"}])"));
}

TEST_CASE("numbers of any size are replayed, and a node without a capacity steers nobody") {
  const std::string config =
      "evictd: {brake: {time: 5s, floor: 100%}, hooks: {time: 1s}, trim: true, steerOom: true, explain: true}";
  const auto scenario = [&](const std::string& thresholds, const std::string& node, const std::string& usage) {
    return run("config: {" + thresholds + ", " + config + R"(}
pods:
- {metadata: {name: a}, spec: {containers: [{name: main}]}}
- {metadata: {name: b}, spec: {containers: [{name: main, resources: {requests: {memory: 7Ei}}}]}}
steps:
- {at: 0s, node: {memory.available: {)" +
               node + "}}, usage: {a: {memory: " + usage + "}, b: {memory: 1Mi}}}\n")
        .at(0)
        .as_object();
  };
  const std::string hard = "evictionHard: {memory.available: 7Ei}";
  CHECK(scenario(hard, "available: 7Ei, capacity: 7Ei", "7Ei").contains("trim"));
  CHECK_FALSE(scenario(hard, "available: 6Ei, capacity: 7Ei", "7Ei").at("evicted").is_null());
  const std::string soft = "evictionSoft: {memory.available: 7Ei}, evictionSoftGracePeriod: {memory.available: 1m}";
  CHECK(scenario("evictionHard: {}, " + soft, "available: -7Ei, capacity: 7Ei", "7Ei").contains("trim"));
  CHECK_FALSE(scenario(hard, "available: 0, capacity: 0", "1Mi").contains("oomScoreAdj"));
}

TEST_CASE("a scenario that cannot be replayed is one line on stderr and exit code 2") {
  const fixture::Tree tree{fixture::file("s.yaml", "steps:\n- at: 1m\n  usage: {z: {}}\n")};
  const auto wrong = fixture::run_evictd({"simulate", tree.path("s.yaml").string()});
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.err ==
        "evictd: " + tree.path("s.yaml").string() + ":3: steps[0].usage.z: there is no pod \"z\" so far\n");

  const auto missing = fixture::run_evictd({"simulate", tree.path("none.yaml").string()});
  CHECK(missing.exit_code == 2);
  CHECK(missing.err == "evictd: " + tree.path("none.yaml").string() + ": cannot be read: No such file or directory\n");
}

TEST_CASE("a result that cannot be written is exit code 1") {
  const fixture::Tree tree{fixture::file("s.yaml", "steps: [{at: 0s}]")};
  const auto outcome = fixture::run_evictd({"simulate", tree.path("s.yaml").string()}, "/dev/full");
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.err == "evictd: stdout cannot be written to: No space left on device\n");
}

}  // namespace evictd::simulate::simulation_test
