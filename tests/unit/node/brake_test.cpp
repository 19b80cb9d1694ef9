#include "node/brake.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "fixture/captured_log.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/result.hpp"

namespace evictd::node::brake_test {
namespace {

using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::value_of;

constexpr std::int64_t MiB = 1 << 20;
constexpr auto unlimited = "9223372036854771712";

/// A pod that holds 300 MiB.
struct Scene {
  explicit Scene(const std::vector<fixture::Entry>& entries) : tree{entries} {}

  Result<Brake> brake() const { return set_brake(hierarchy, notes, "a", "/kubepods/poda", 32 * MiB); }
  [[nodiscard]] std::string read(const std::string& name) const {
    return value_of(read_held_file(value_of(hierarchy.memory("/kubepods/poda")), name));
  }
  void lift() const { CHECK(lift_hold(hierarchy, notes, "a").has_value()); }

  fixture::Tree tree;
  CgroupHierarchy hierarchy = value_of(CgroupHierarchy::detect(tree.path("cgroup")));
  HoldNotes notes{tree.path("run/held")};
};

std::vector<fixture::Entry> v2(const std::string& high) {
  return fixture::v2_node({}, 0,
                          {dir("kubepods", {dir("poda", {file("memory.current", std::to_string(300 * MiB) + "\n"),
                                                         file("memory.high", high + "\n")})})});
}

std::vector<fixture::Entry> v1(const std::string& limit) {
  return fixture::v1_node(
      {}, {},
      {dir("kubepods", {dir("poda", {file("memory.usage_in_bytes", std::to_string(300 * MiB) + "\n"),
                                     file("memory.limit_in_bytes", limit + "\n"),
                                     file("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n")})})});
}

}  // namespace

TEST_CASE("v2: memory.high of the pod's cgroup stands at what it uses and the headroom, until it is lifted") {
  const Scene scene{v2("max")};
  const auto brake = value_of(scene.brake());
  CHECK(brake.usage == 300 * MiB);
  CHECK(brake.limit == 332 * MiB);
  CHECK(scene.read("memory.high") == std::to_string(332 * MiB));
  CHECK(scene.notes.uids() == std::vector<std::string>{"a"});
  scene.lift();
  CHECK(scene.read("memory.high") == "max");
  CHECK(scene.notes.uids().empty());
}

TEST_CASE("v1: the limit stands there, and who is beyond it waits") {
  const Scene scene{v1(unlimited)};
  CHECK(value_of(scene.brake()).limit == 332 * MiB);
  CHECK(scene.read("memory.limit_in_bytes") == std::to_string(332 * MiB));
  CHECK(scene.read("memory.oom_control") == "1");
  scene.lift();
  CHECK(scene.read("memory.limit_in_bytes") == unlimited);
  CHECK(scene.read("memory.oom_control") == "0");
}

TEST_CASE("a limit of the pod's own that is lower stays") {
  const auto own = std::to_string(310 * MiB);
  const Scene two{v2(own)};
  CHECK(value_of(two.brake()).limit == 310 * MiB);
  CHECK(two.read("memory.high") == own);
  two.lift();
  CHECK(two.read("memory.high") == own);

  const Scene one{v1(own)};
  CHECK(value_of(one.brake()).limit == 310 * MiB);
  CHECK(one.read("memory.limit_in_bytes") == own);
  CHECK(one.read("memory.oom_control") == "1");
  one.lift();
  CHECK(one.read("memory.oom_control") == "0");
}

TEST_CASE("a brake that cannot be set leaves nothing behind") {
  const fixture::CapturedLog log;
  const Scene scene{v1(unlimited)};
  scene.tree.remove("cgroup/memory/kubepods/poda/memory.usage_in_bytes");
  CHECK_FALSE(scene.brake().has_value());
  CHECK(scene.read("memory.oom_control") == "0");
  CHECK(scene.read("memory.limit_in_bytes") == unlimited);
  CHECK(scene.notes.uids().empty());

  scene.tree.remove("cgroup/memory/kubepods/poda");
  CHECK_FALSE(scene.brake().has_value());
  CHECK(scene.notes.uids().empty());
}

TEST_CASE("a brake is widened, and what stood there before is put back all the same") {
  for (const bool on_v2 : {true, false}) {
    CAPTURE(on_v2);
    const Scene scene{on_v2 ? v2("max") : v1(unlimited)};
    const std::string name = on_v2 ? "memory.high" : "memory.limit_in_bytes";
    const std::string before = on_v2 ? "max" : unlimited;
    const auto widen = [&] { return widen_brake(scene.hierarchy, scene.notes, "a", 400 * MiB); };
    CHECK(widen().has_value());  // there is none
    CHECK(scene.read(name) == before);
    REQUIRE(scene.brake().has_value());
    CHECK(widen().has_value());
    CHECK(scene.read(name) == std::to_string(400 * MiB));
    scene.lift();
    CHECK(scene.read(name) == before);
  }
}

TEST_CASE("a brake is widened up to the pod's own limit at most, and someone else's not at all") {
  const auto own = std::to_string(340 * MiB);
  const Scene scene{v2(own)};
  REQUIRE(scene.brake().has_value());
  CHECK(widen_brake(scene.hierarchy, scene.notes, "a", 400 * MiB).has_value());
  CHECK(scene.read("memory.high") == own);
  scene.lift();

  REQUIRE(scene.brake().has_value());
  scene.tree.write("cgroup/kubepods/poda/memory.high", "4096\n");
  CHECK(widen_brake(scene.hierarchy, scene.notes, "a", 400 * MiB).has_value());
  CHECK(scene.read("memory.high") == "4096");
}

TEST_CASE("without a note nothing is touched") {
  const Scene scene{v2("max")};
  scene.tree.add("", dir("run", {file("held", "")}));
  CHECK(error_of(scene.brake()).contains("held"));
  CHECK(scene.read("memory.high") == "max");
}

TEST_CASE("a brake that an earlier hold left does not count as what stood there before") {
  const Scene scene{v2("max")};
  REQUIRE(scene.brake().has_value());
  scene.tree.write("cgroup/kubepods/poda/memory.current", std::to_string(200 * MiB) + "\n");
  CHECK(value_of(scene.brake()).limit == 232 * MiB);
  scene.lift();
  CHECK(scene.read("memory.high") == "max");
}

}  // namespace evictd::node::brake_test
