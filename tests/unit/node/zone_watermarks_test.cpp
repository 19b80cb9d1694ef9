#include "node/zone_watermarks.hpp"

#include <doctest/doctest.h>

namespace evictd::node::zone_watermarks_test {

TEST_CASE("the watermarks of all zones are added up, and look-alikes are not") {
  constexpr auto text = R"(Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 4711
  pages free     3840
        boost    0
        min      10
        low      13
        high     16
  pagesets
    cpu: 0
              count:    0
              high:     6
              low:      7
              high_min: 6
Node 0, zone   Normal
  pages free     772915
        min      100
        low      130
        high     160
)";
  const auto marks = parse_zoneinfo(text, 4096);
  REQUIRE(marks.has_value());
  CHECK(marks->min == 110 * 4096);
  CHECK(marks->low == 143 * 4096);
}

TEST_CASE("a text without zones has no watermarks") {
  CHECK_FALSE(parse_zoneinfo("", 4096).has_value());
  CHECK_FALSE(parse_zoneinfo("lowest 3\n", 4096).has_value());
}

TEST_CASE("this machine has watermarks") {
  const auto marks = read_zone_watermarks("/proc");
  REQUIRE(marks.has_value());
  CHECK(marks->low >= marks->min);
  CHECK(marks->min > 0);
}

}  // namespace evictd::node::zone_watermarks_test
