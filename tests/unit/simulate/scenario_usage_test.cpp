#include "simulate/scenario_usage.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::simulate::scenario_usage_test {
namespace {

using fixture::container;
using fixture::error_of;
using fixture::value_of;
using Kind = core::Volume::Kind;

/// Two containers and a volume of each kind that matters.
core::Pod pod() {
  auto pod = fixture::pod("a", {container("first"), container("second")});
  pod.volumes = {fixture::empty_dir("cache"), fixture::volume("host", Kind::HostPath),
                 fixture::volume("config", Kind::ConfigMap), fixture::empty_dir("tmpfs", "", "Memory")};
  return pod;
}

Result<core::PodUsage> read(std::string_view text) {
  return read_pod_usage(value_of(config::parse_yaml(text, "s.yaml")), pod());
}

core::PodUsage usage(std::string_view text) { return value_of(read(text)); }

}  // namespace

TEST_CASE("what is not said of a container belongs to the first one") {
  const auto read = usage("{memory: 9Ki, rootfs: 1Ki, logs: 2Ki, inodes: 7, processes: 3}");
  CHECK(read.working_set == 9216);
  CHECK(read.processes == 3);
  REQUIRE(read.containers.size() == 2);
  CHECK(read.containers[0] == core::ContainerUsage{.name = "first",
                                                   .working_set = 9216,
                                                   .rootfs = {.bytes = 1024, .inodes = 7},
                                                   .logs = {.bytes = 2048, .inodes = 0}});
}

TEST_CASE("a pod runs unless it is said not to") {
  CHECK(usage("{}").runs);
  CHECK_FALSE(usage("{runs: false}").runs);
}

TEST_CASE("a missing key means nothing is used, not that nothing is known") {
  const auto read = usage("{}");
  CHECK(read.working_set == 0);
  CHECK(read.processes == 0);
  CHECK(read.ephemeral == 0);
  for (const auto& container : read.containers) {
    CHECK(container.working_set == 0);
    CHECK(container.rootfs == core::DiskUsage{.bytes = 0, .inodes = 0});
    CHECK(container.logs == core::DiskUsage{.bytes = 0, .inodes = 0});
  }
  CHECK(read.volumes.empty());
}

TEST_CASE("containers may be told apart, in the order the scenario has them") {
  const auto read =
      usage("{memory: 5, rootfs: 1Gi, containers: {second: {rootfs: 10, logs: 20, inodes: 30}, first: {}}}");
  REQUIRE(read.containers.size() == 2);
  CHECK(read.containers[0] == core::ContainerUsage{.name = "second",
                                                   .working_set = 0,
                                                   .rootfs = {.bytes = 10, .inodes = 30},
                                                   .logs = {.bytes = 20, .inodes = 0}});
  CHECK(read.containers[1].rootfs.bytes == 0);
  CHECK(read.containers[1].working_set == 5);
  CHECK(read.ephemeral == 30);
}

TEST_CASE("the pod's ephemeral figure is layers, logs and local ephemeral volumes, unless it is given") {
  constexpr auto* disk =
      "rootfs: 1, logs: 10, volumes: {cache: 100, host: 1000, config: 10000, tmpfs: 100000, other: 1000000}";
  CHECK(usage(std::string("{") + disk + "}").ephemeral == 10'111);
  CHECK(usage(std::string("{ephemeral: 5, ") + disk + "}").ephemeral == 5);
  CHECK(usage("{volumes: {other: 7}}").volumes.at("other").bytes == 7);
}

TEST_CASE("an error in a usage names the key") {
  CHECK(error_of(read("{memroy: 1}")) == "s.yaml:1: memroy: unknown key; did you mean \"memory\"?");
  CHECK(error_of(read("{memory: -1}")) == "s.yaml:1: memory: \"-1\" must not be negative");
  CHECK(error_of(read("{volumes: {cache: x}}")) ==
        "s.yaml:1: volumes: cache: \"x\" is not a quantity such as 150Mi, 1.5G or 500");
  CHECK(error_of(read("{containers: {first: {memory: 1}}}")) ==
        "s.yaml:1: containers.first.memory: unknown key; those known here are rootfs, logs, inodes");
  CHECK(error_of(read("{containers: [first]}")) == "s.yaml:1: containers: a list stands where a mapping is expected");
}

}  // namespace evictd::simulate::scenario_usage_test
