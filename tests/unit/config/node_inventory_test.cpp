#include "config/node_inventory.hpp"

#include <doctest/doctest.h>

namespace evictd::config::node_inventory_test {

TEST_CASE("a label is a key and a value") {
  CHECK(parse_label("zone=a").value() == std::pair<std::string, std::string>{"zone", "a"});
  CHECK(parse_label("example.com/ssd=").value() == std::pair<std::string, std::string>{"example.com/ssd", ""});
  CHECK(parse_label("zone").error().message == "\"zone\" is no KEY=VALUE");
  CHECK(parse_label("zone=a b").error().message ==
        "\"zone=a b\": a label has letters, digits, \"-\", \"_\" and \".\", and its key may have \"/\"");
  CHECK_FALSE(parse_label("zo ne=a"));
  CHECK_FALSE(parse_label("zone=a=b"));
  CHECK_FALSE(parse_label("zone=a/b"));
  CHECK_FALSE(parse_label("=a").has_value());
}

TEST_CASE("a device is a resource, an id and the NUMA nodes that it is near to") {
  const auto device = parse_device("example.com/gpu=gpu0@0-1").value();
  CHECK(device == admission::Device{"example.com/gpu", "gpu0", {0, 1}});
  CHECK(print_device(device) == "example.com/gpu=gpu0@0-1");
  CHECK(parse_device("example.com/nic=eth0").value() == admission::Device{"example.com/nic", "eth0", {}});
}

TEST_CASE("what is no device is said to be none") {
  for (const auto* text : {"", "gpu0", "gpu=gpu0", "example.com/gpu=", "example.com/gpu=a@", "example.com/gpu=a@b"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_device(text).has_value());
  }
  CHECK(parse_device("gpu=gpu0").error().message == "\"gpu=gpu0\" is no device such as example.com/gpu=gpu0@0");
}

}  // namespace evictd::config::node_inventory_test
