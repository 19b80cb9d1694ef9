#include "admission/plugin_capacity.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::plugin_capacity_test {
namespace {

using fixture::amounts;

NodeSnapshot node() {
  NodeSnapshot result{.node =
                          core::Node{.name = "n1", .allocatable = amounts({{"cpu", "4"}, {"gpu", "9"}, {"nic", "2"}})}};
  result.plugins.groups["gpu"] = std::make_shared<const DeviceGroup>(
      DeviceGroup{.places = {{"a", {}}, {"b", {}}, {"c", {}}}, .healthy = {"a", "b"}});
  return result;
}

core::ResourceList allocatable(NodeSnapshot node) {
  add_plugin_capacity(node);
  add_plugin_capacity(node);
  return node.node->allocatable;
}

}  // namespace

TEST_CASE("healthy devices are allocatable, whatever was said of the resource before") {
  CHECK(allocatable(node()) == amounts({{"cpu", "4"}, {"gpu", "2"}, {"nic", "2"}}));
}

TEST_CASE("a pod that has a device which is not healthy any more still fits") {
  auto some = node();
  some.allocations["x"]["main"].devices["gpu"] = {"a", "c", "gone"};
  CHECK(allocatable(some) == amounts({{"cpu", "4"}, {"gpu", "4"}, {"nic", "2"}}));
}

TEST_CASE("of a resource whose plugin has gone there is what pods have, or more where the node says so") {
  auto some = node();
  some.plugins.groups.clear();
  some.allocations["x"]["main"].devices["fpga"] = {"f"};
  some.allocations["x"]["main"].devices["nic"] = {"n"};
  CHECK(allocatable(some) == amounts({{"cpu", "4"}, {"fpga", "1"}, {"gpu", "9"}, {"nic", "2"}}));
}

TEST_CASE("pods that have configured devices make a node name nothing that it does not name") {
  auto some = node();
  some.configured_devices = {"fpga", "nic"};
  some.allocations["x"]["main"].devices["fpga"] = {"f"};
  some.allocations["x"]["main"].devices["nic"] = {"n"};
  CHECK(allocatable(some) == amounts({{"cpu", "4"}, {"gpu", "2"}, {"nic", "2"}}));
}

TEST_CASE("a node that is not known stays so") {
  NodeSnapshot unknown;
  add_plugin_capacity(unknown);
  CHECK_FALSE(unknown.node.has_value());
}

}  // namespace evictd::admission::plugin_capacity_test
