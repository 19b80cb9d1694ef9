#include "app/node_facts.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "app/admission.hpp"
#include "fixture/pods.hpp"
#include "fixture/tree.hpp"

namespace evictd::app::node_facts_test {
namespace {

using core::Quantity;
using fixture::amounts;
using fixture::dir;
using fixture::file;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

/// Of a node that describes itself.
core::ResourceList allocatable(const Configuration& configuration, const std::filesystem::path& sys = "/nowhere") {
  const auto snapshot = NodeFacts{configuration, 8_GiB, nullptr, sys}.snapshot({});
  REQUIRE(snapshot.node.has_value());
  return snapshot.node->allocatable;
}

}  // namespace

TEST_CASE("admission knows which resources the configuration has devices of") {
  Configuration configuration;
  configuration.agent.admission.devices = {{.resource = "example.com/gpu", .id = "gpu0"},
                                           {.resource = "example.com/gpu", .id = "gpu1"},
                                           {.resource = "example.com/nic", .id = "eth1"}};
  const auto snapshot = NodeFacts{configuration, std::int64_t{8} << 30, nullptr}.snapshot({});
  CHECK(snapshot.configured_devices == std::set<std::string, std::less<>>{"example.com/gpu", "example.com/nic"});
  REQUIRE(snapshot.node.has_value());
  CHECK(snapshot.node->allocatable.at("example.com/gpu").value() == 2);
}

TEST_CASE("where CPUs are reserved by their numbers, so many are kept back, whatever else is reserved of cpu") {
  const auto cpus = ::sysconf(_SC_NPROCESSORS_ONLN);
  Configuration configuration;
  configuration.kubelet.kube_reserved = amounts({{"cpu", "2"}, {"memory", "1Gi"}});
  configuration.kubelet.system_reserved = amounts({{"cpu", "500m"}, {"memory", "1Gi"}});
  configuration.kubelet.reserved_system_cpus = "0";
  const auto all = allocatable(configuration);
  CHECK(all.at("cpu") == Quantity::count(cpus - 1));
  CHECK(all.at("memory") == Quantity::bytes(6_GiB));

  SUBCASE("also where the policies that go by these CPUs are left out") {
    configuration.kubelet.cpu_manager_policy = "static";
    configuration.kubelet.cpu_manager_policy_options = {{"of-a-newer-kubelet", "true"}};
    leave_out_impossible_allocation(configuration);
    REQUIRE(configuration.no_allocation);
    CHECK(allocatable(configuration).at("cpu") == Quantity::count(cpus - 1));
  }
}

TEST_CASE("huge pages are pods' by their size, and no ordinary memory") {
  const fixture::Tree tree{
      dir("kernel", {dir("mm", {dir("hugepages", {dir("hugepages-2048kB", {file("nr_hugepages", "256\n")}),
                                                  dir("hugepages-1048576kB", {file("nr_hugepages", "0\n")})})})})};
  const auto all = allocatable({}, tree.path());
  CHECK(all.at("hugepages-2Mi") == Quantity::bytes(512_MiB));
  CHECK(all.at("hugepages-1Gi").is_zero());
  CHECK(all.at("memory") == Quantity::bytes(8_GiB - 512_MiB));
}

TEST_CASE("a kernel without huge pages has none for pods") {
  const auto all = allocatable({});
  CHECK(all.at("memory") == Quantity::bytes(8_GiB));
  for (const auto& [resource, amount] : all) CHECK_FALSE(resource.starts_with("hugepages-"));
}

}  // namespace evictd::app::node_facts_test
