#include "host/node_name.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace evictd::host::node_name_test {

TEST_CASE("a node is called as configured, else by the environment, else as its host") {
  REQUIRE(::setenv("NODE_NAME", "from-environment", 1) == 0);
  CHECK(node_name("configured") == "configured");
  CHECK(node_name("") == "from-environment");
  REQUIRE(::setenv("NODE_NAME", "", 1) == 0);
  const auto host = node_name("");
  REQUIRE(::unsetenv("NODE_NAME") == 0);
  CHECK(node_name("") == host);
  CHECK_FALSE(host.empty());
  CHECK(std::ranges::none_of(host, [](unsigned char c) { return std::isupper(c) || std::isspace(c); }));
}

}  // namespace evictd::host::node_name_test
