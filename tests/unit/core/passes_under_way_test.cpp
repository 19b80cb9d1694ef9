#include "core/passes_under_way.hpp"

#include <doctest/doctest.h>

namespace evictd::core::passes_under_way_test {

TEST_CASE("the newest pass counts, and beside it the one that waits for a disk") {
  PassesUnderWay passes;
  const auto disk = passes.begin();
  passes.wait_for_disk(disk);
  const auto older = passes.begin();
  const auto newest = passes.begin();
  CHECK(passes.is_wanted(disk));
  CHECK_FALSE(passes.is_wanted(older));
  CHECK(passes.is_wanted(newest));
  CHECK(passes.waits_for_disk());

  passes.end(newest);
  CHECK(passes.waits_for_disk());
  passes.end(disk);
  CHECK_FALSE(passes.waits_for_disk());
}

TEST_CASE("none counts that was begun before all were dropped") {
  PassesUnderWay passes;
  const auto disk = passes.begin();
  passes.wait_for_disk(disk);
  const auto newest = passes.begin();
  passes.drop_all();
  CHECK_FALSE(passes.is_wanted(disk));
  CHECK_FALSE(passes.is_wanted(newest));
  CHECK_FALSE(passes.waits_for_disk());

  const auto next = passes.begin();
  passes.wait_for_disk(next);
  passes.end(disk);
  CHECK(passes.is_wanted(next));
  CHECK(passes.waits_for_disk());
}

}  // namespace evictd::core::passes_under_way_test
