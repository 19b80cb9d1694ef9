#include "config/chain_settings.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::config::chain_settings_test {
namespace {

using fixture::amounts;
using fixture::error_of;
using fixture::value_of;
using fixture::operator""_GiB;

const auto machine = value_of(admission::make_topology(
    {.sockets = 2, .cores_per_numa_node = 2, .memory_per_numa_node = {{"memory", 4_GiB}, {"hugepages-2Mi", 1_GiB}}}));

KubeletConfiguration kubelet() {
  KubeletConfiguration configuration;
  configuration.eviction.hard = core::EvictionSettings::BySignal{{"memory.available", "25%"}};
  return configuration;
}

}  // namespace

TEST_CASE("admission goes by the node's KubeletConfiguration") {
  auto configuration = kubelet();
  configuration.allowed_unsafe_sysctls = {"net.core.*"};
  configuration.topology_manager_policy = "restricted";
  configuration.topology_manager_scope = "pod";
  configuration.topology_manager_policy_options = {{"prefer-closest-numa-nodes", "true"}};
  configuration.cpu_manager_policy = "static";
  configuration.cpu_manager_policy_options = {{"full-pcpus-only", "true"}};
  configuration.memory_manager_policy = "Static";
  configuration.reserved_system_cpus = "0,3";
  configuration.reserved_memory = {{.numa_node = 1, .limits = amounts({{"memory", "3Gi"}})}};
  configuration.kube_reserved = amounts({{"cpu", "1"}, {"memory", "1Gi"}});
  configuration.system_reserved = amounts({{"cpu", "500m"}});

  const auto settings = value_of(chain_settings(configuration, machine, {{.resource = "a.b/c", .id = "0"}}));
  CHECK(settings.allowed_unsafe_sysctls == configuration.allowed_unsafe_sysctls);
  const auto& allocation = settings.allocation;
  CHECK(allocation.topology_policy == "restricted");
  CHECK(allocation.topology_scope == "pod");
  CHECK(allocation.topology_options == configuration.topology_manager_policy_options);
  CHECK(allocation.cpu_policy == "static");
  CHECK(allocation.cpu_options == configuration.cpu_manager_policy_options);
  CHECK(allocation.memory_policy == "Static");
  CHECK(allocation.topology == machine);
  CHECK(allocation.reserved == amounts({{"cpu", "1500m"}, {"memory", "3Gi"}}));
  CHECK(allocation.reserved_cpus == admission::CpuSet{0, 3});
  REQUIRE(allocation.reserved_memory.size() == 1);
  CHECK(allocation.reserved_memory[0].numa_node == 1);
  CHECK(allocation.reserved_memory[0].limits == amounts({{"memory", "3Gi"}}));
  CHECK(allocation.devices.size() == 1);
}

TEST_CASE("on a machine of which nothing is known only devices are allocated") {
  auto configuration = kubelet();
  configuration.cpu_manager_policy = "static";
  configuration.memory_manager_policy = "Static";
  const auto settings = value_of(chain_settings(configuration, {}, {{.resource = "a.b/c", .id = "0"}}));
  CHECK(settings.allocation.cpu_policy == "none");
  CHECK(settings.allocation.memory_policy == "None");
  CHECK(settings.allocation.devices.size() == 1);
  CHECK(value_of(admission::kubelet_chain(settings)).names().size() == 7);
}

TEST_CASE("CPUs that are no list are an error") {
  auto configuration = kubelet();
  configuration.reserved_system_cpus = "first";
  CHECK(error_of(chain_settings(configuration, machine, {})) ==
        "reservedSystemCPUs: \"first\" is no list of numbers such as 0-3,8");
}

}  // namespace evictd::config::chain_settings_test
