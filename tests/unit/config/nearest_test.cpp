#include "config/nearest.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace evictd::config::nearest_test {

TEST_CASE("a slip of the pen is one edit") {
  CHECK(edit_distance("sampler", "sampler") == 0);
  CHECK(edit_distance("samplr", "sampler") == 1);
  CHECK(edit_distance("sampleer", "sampler") == 1);
  CHECK(edit_distance("sanpler", "sampler") == 1);
  CHECK(edit_distance("evictionHrad", "evictionHard") == 1);
  CHECK(edit_distance("EvictionHard", "evictionhard") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest known word is suggested, and none when nothing is near") {
  constexpr std::array<std::string_view, 4> known{"cgroupRoot", "podsCgroup", "memcg", "level"};
  CHECK(nearest("cgroup_root", known) == "cgroupRoot");
  CHECK(nearest("podCgroup", known) == "podsCgroup");
  CHECK(nearest("lvl", known) == "level");
  CHECK(nearest("Memcg", known) == "memcg");
  CHECK_FALSE(nearest("timeout", known));
  CHECK_FALSE(nearest("", known));
}

TEST_CASE("an endless word is compared with nothing") {
  constexpr std::array<std::string_view, 1> known{"level"};
  CHECK_FALSE(nearest(std::string(1 << 20, 'l'), known));
}

}  // namespace evictd::config::nearest_test
