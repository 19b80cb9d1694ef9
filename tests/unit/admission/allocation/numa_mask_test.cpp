#include "admission/allocation/numa_mask.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace evictd::admission::numa_mask_test {

TEST_CASE("a mask holds NUMA nodes as bits") {
  const NumaMask mask{NumaNodes{0, 3, 63}};
  CHECK(mask.count() == 3);
  CHECK(mask.contains(63));
  CHECK_FALSE(mask.contains(1));
  CHECK_FALSE(mask.contains(64));
  CHECK_FALSE(mask.contains(-1));
  CHECK(mask.nodes() == NumaNodes{0, 3, 63});
  CHECK(mask.contains(NumaMask::of(3)));
  CHECK_FALSE(NumaMask::of(3).contains(mask));
  CHECK(NumaMask{}.empty());
}

TEST_CASE("fewer nodes are narrower, and of as many the lower ones") {
  CHECK(is_narrower(NumaMask::of(5), NumaMask{NumaNodes{0, 1}}));
  CHECK(is_narrower(NumaMask{NumaNodes{0, 1}}, NumaMask{NumaNodes{0, 2}}));
  CHECK_FALSE(is_narrower(NumaMask::of(1), NumaMask::of(1)));
}

TEST_CASE("every part of a mask comes once") {
  std::vector<std::uint64_t> seen;
  for_each_mask(NumaMask{NumaNodes{1, 4}}, [&](NumaMask mask) { seen.push_back(mask.bits()); });
  CHECK(seen == std::vector<std::uint64_t>{2, 16, 18});
  for_each_mask(NumaMask{}, [&](NumaMask) { FAIL("there is none"); });
}

}  // namespace evictd::admission::numa_mask_test
