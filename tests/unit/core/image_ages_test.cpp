#include "core/image_ages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

namespace evictd::core::image_ages_test {
namespace {

using namespace std::chrono_literals;

using Ids = std::vector<std::string>;

/// Some time after the machine's start.
constexpr Instant at(Duration time) { return Instant{} + 1h + time; }

struct Node {
  ImageAges ages;

  /// These are there, and some of them in use.
  void look(Instant time, const Ids& ids, const Ids& used = {}) {
    std::vector<SeenImage> images;
    for (const auto& id : ids) images.push_back({.id = id, .used = std::ranges::find(used, id) != used.end()});
    ages.note(images, time);
  }
  [[nodiscard]] Ids may_go(Instant begun, Duration minimum_age) const { return ages.may_go(begun, minimum_age); }
};

}  // namespace

TEST_CASE("an image may go once it is old enough, which counts from when it was first seen") {
  Node node;
  node.look(at(0s), {"a"});
  node.look(at(60s), {"a", "b"});
  CHECK(node.may_go(at(120s) - 1ns, 2min).empty());
  CHECK(node.may_go(at(120s), 2min) == Ids{"a"});
  CHECK(node.may_go(at(180s), 2min) == Ids{"a", "b"});
}

TEST_CASE("at the first look every image is new: for how long it has been there cannot be known") {
  Node node;
  node.look(at(0s), {"a"});
  CHECK(node.may_go(at(0s), 2min).empty());
  CHECK(node.may_go(at(0s), 1ns).empty());
}

TEST_CASE("where no age is asked for, an image goes in the reclaim that sees it first") {
  Node node;
  node.look(at(0s), {"a"});
  CHECK(node.may_go(at(0s), 0s) == Ids{"a"});
  CHECK(node.may_go(at(0s), -1s) == Ids{"a"});
}

TEST_CASE("an image that went and came back is new") {
  Node node;
  node.look(at(0s), {"a"});
  node.look(at(60s), {});
  node.look(at(120s), {"a"});
  CHECK(node.may_go(at(200s), 2min).empty());
  CHECK(node.may_go(at(240s), 2min) == Ids{"a"});
}

TEST_CASE("an image that was removed and pulled again before the next look is new") {
  Node node;
  node.look(at(0s), {"a", "b"});
  node.ages.forget("a");
  CHECK(node.may_go(at(180s), 2min) == Ids{"b"});
  node.look(at(180s), {"a", "b"});
  CHECK(node.may_go(at(240s), 2min) == Ids{"b"});
  CHECK(node.may_go(at(300s), 2min) == Ids{"b", "a"});
}

TEST_CASE("an image that was in use since the reclaim began stays, however old it is") {
  Node node;
  node.look(at(0s), {"a", "b"});
  node.look(at(10min), {"a", "b"}, {"a"});
  CHECK(node.may_go(at(10min), 2min) == Ids{"b"});
  CHECK(node.may_go(at(9min), 2min) == Ids{"b"});  // another look was quicker than the reclaim
  CHECK(node.may_go(at(11min), 2min) == Ids{"b", "a"});
}

TEST_CASE("the image whose use ended longest ago goes first, those never used before all, by when they were seen") {
  Node node;
  node.look(at(0s), {"z-never", "x-used"}, {"x-used"});
  node.look(at(1s), {"z-never", "x-used", "y-later", "w-never", "v-never"}, {"y-later"});
  CHECK(node.may_go(at(1min), 0s) == Ids{"z-never", "v-never", "w-never", "x-used", "y-later"});
}

TEST_CASE("only images of the last look may go") {
  Node node;
  CHECK(node.may_go(at(0s), 0s).empty());
  node.look(at(0s), {"a", "b"});
  node.look(at(60s), {"b"});
  CHECK(node.may_go(at(1h), 2min) == Ids{"b"});
}

}  // namespace evictd::core::image_ages_test
