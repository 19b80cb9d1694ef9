#include "app/node_facts.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "fixture/pods.hpp"

namespace evictd::app::node_facts_test {

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

}  // namespace evictd::app::node_facts_test
