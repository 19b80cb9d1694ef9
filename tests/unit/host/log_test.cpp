#include "host/log.hpp"

#include <doctest/doctest.h>

TEST_CASE("control bytes in a log line are escaped, other text stays as it is") {
  using evictd::host::printable;
  CHECK(printable("default/bloat") == "default/bloat");
  CHECK(printable("name\nevictd: forged\x1b[2J\x7f") == "name\\x0aevictd: forged\\x1b[2J\\x7f");
  CHECK(printable("größe") == "größe");
}
