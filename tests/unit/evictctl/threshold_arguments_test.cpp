#include "evictctl/threshold_arguments.hpp"

#include <doctest/doctest.h>

namespace evictd::ctl::threshold_arguments_test {
namespace {

std::string error_of(const ThresholdArguments& arguments) {
  const auto changes = threshold_changes(arguments);
  return changes ? "none" : changes.error().message;
}

}  // namespace

TEST_CASE("each assignment is a change; nothing behind the sign removes") {
  const auto changes = threshold_changes({.assignments = {"memory.available=500Mi", "pid.available="}});
  REQUIRE(changes.has_value());
  REQUIRE(changes->size() == 2);
  CHECK(changes->at(0).signal() == "memory.available");
  CHECK(changes->at(0).value() == "500Mi");
  CHECK_FALSE(changes->at(0).soft());
  CHECK_FALSE(changes->at(0).has_grace_period());
  CHECK_FALSE(changes->at(0).has_minimum_reclaim());
  CHECK(changes->at(1).value() == "");
}

TEST_CASE("a soft one has a grace period, to the nanosecond") {
  const auto changes = threshold_changes(
      {.assignments = {"memory.available=1Gi"}, .soft = true, .grace = "1m30.5s", .minimum_reclaim = "100Mi"});
  REQUIRE(changes.has_value());
  const auto& change = changes->front();
  CHECK(change.soft());
  CHECK(change.grace_period().seconds() == 90);
  CHECK(change.grace_period().nanos() == 500'000'000);
  CHECK(change.minimum_reclaim() == "100Mi");
}

TEST_CASE("what is malformed is told before anybody is asked") {
  CHECK(error_of({.assignments = {"memory.available"}}) ==
        "\"memory.available\" is not SIGNAL=VALUE, such as memory.available=500Mi");
  CHECK(error_of({.assignments = {"=5Mi"}}).starts_with("\"=5Mi\" is not SIGNAL=VALUE"));
  CHECK(error_of({.assignments = {"a=b"}, .soft = true, .grace = "soon"}).starts_with("--grace: "));
  CHECK(error_of({.assignments = {"a=b"}, .soft = true, .grace = "-1s"}).starts_with("--grace: "));
  CHECK(error_of({.assignments = {"a=b"}, .grace = "1m"}) ==
        "--grace: only a soft threshold has a grace period: say --soft");
}

}  // namespace evictd::ctl::threshold_arguments_test
