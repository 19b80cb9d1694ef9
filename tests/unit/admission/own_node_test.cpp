#include "admission/own_node.hpp"

#include <doctest/doctest.h>

#include "core/eviction_settings.hpp"
#include "fixture/pods.hpp"

namespace evictd::admission::own_node_test {
namespace {

using core::Quantity;
using fixture::amounts;
using fixture::operator""_MiB;
using fixture::operator""_GiB;

OwnNodeFacts facts() {
  return {.name = "n1",
          .architecture = "amd64",
          .capacity = amounts({{"cpu", "4"}, {"memory", "8Gi"}, {"ephemeral-storage", "100Gi"}})};
}

}  // namespace

TEST_CASE("what is neither reserved nor kept free is allocatable") {
  CHECK(own_node(facts()).allocatable ==
        amounts({{"cpu", "4"}, {"memory", "8Gi"}, {"ephemeral-storage", "100Gi"}, {"pods", "110"}}));

  auto reserving = facts();
  reserving.max_pods = 20;
  reserving.kube_reserved = amounts({{"cpu", "500m"}, {"memory", "1Gi"}});
  reserving.system_reserved = amounts({{"cpu", "250m"}, {"memory", "512Mi"}, {"ephemeral-storage", "10Gi"}});
  core::EvictionSettings eviction;
  eviction.hard = core::EvictionSettings::BySignal{{"memory.available", "100Mi"},
                                                   {"nodefs.available", "10%"},
                                                   {"nodefs.inodesFree", "5%"},
                                                   {"imagefs.available", "15%"}};
  eviction.soft = {{"memory.available", "2Gi"}};
  eviction.soft_grace_period = {{"memory.available", "1m"}};
  const auto policy = fixture::value_of(core::make_policy(eviction));
  reserving.thresholds = policy.thresholds;
  const auto node = own_node(reserving);
  CHECK(node.allocatable.at("cpu") == fixture::quantity("3250m"));
  CHECK(node.allocatable.at("memory") == Quantity::bytes(8_GiB - 1536_MiB - 100_MiB));
  // A tenth in float32 is a hair more than a tenth: 10% of 100Gi is 10737418400.
  CHECK(node.allocatable.at("ephemeral-storage") == Quantity::bytes(90_GiB - 10'737'418'400));
  CHECK(node.allocatable.at("pods") == Quantity::count(20));
}

TEST_CASE("nothing is less than nothing") {
  auto all = facts();
  all.kube_reserved = amounts({{"memory", "9Gi"}});
  CHECK(own_node(all).allocatable.at("memory").is_zero());
}

TEST_CASE("huge pages are no ordinary memory") {
  auto huge = facts();
  huge.capacity.emplace("hugepages-2Mi", fixture::quantity("512Mi"));
  huge.capacity.emplace("hugepages-1Gi", fixture::quantity("2Gi"));
  const auto node = own_node(huge);
  CHECK(node.allocatable.at("memory") == Quantity::bytes(8_GiB - 2560_MiB));
  CHECK(node.allocatable.at("hugepages-2Mi") == Quantity::bytes(512_MiB));
}

TEST_CASE("devices are counted by what they are") {
  auto with_devices = facts();
  with_devices.devices = {{.resource = "example.com/gpu", .id = "0"},
                          {.resource = "example.com/gpu", .id = "1"},
                          {.resource = "example.com/nic", .id = "0"}};
  const auto node = own_node(with_devices);
  CHECK(node.allocatable.at("example.com/gpu") == Quantity::count(2));
  CHECK(node.allocatable.at("example.com/nic") == Quantity::count(1));
}

TEST_CASE("every node has labels for its name, system and architecture; more are added or replace them") {
  auto labelled = facts();
  labelled.labels = {{"disk", "ssd"}, {"kubernetes.io/hostname", "other"}};
  labelled.taints = {{.key = "dedicated", .value = "x", .effect = "NoExecute"}};
  const auto node = own_node(labelled);
  CHECK(node.name == "n1");
  CHECK(node.labels == std::map<std::string, std::string, std::less<>>{{"beta.kubernetes.io/arch", "amd64"},
                                                                       {"beta.kubernetes.io/os", "linux"},
                                                                       {"disk", "ssd"},
                                                                       {"kubernetes.io/arch", "amd64"},
                                                                       {"kubernetes.io/hostname", "other"},
                                                                       {"kubernetes.io/os", "linux"}});
  CHECK(node.taints == labelled.taints);
  CHECK_FALSE(node.supplemental_groups_policy);
}

TEST_CASE("an architecture that is not told is that of the program") {
  auto unsaid = facts();
  unsaid.architecture = "";
  CHECK_FALSE(own_node(unsaid).labels.at("kubernetes.io/arch").empty());
}

}  // namespace evictd::admission::own_node_test
