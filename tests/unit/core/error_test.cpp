#include "core/error.hpp"

#include <doctest/doctest.h>

namespace evictd::error_test {
namespace {

Result<int> read() { return fail("is not a number"); }

Result<int> load() {
  const auto value = read();
  if (!value) return fail(value.error(), "notifier.interval");
  return *value;
}

}  // namespace

TEST_CASE("an error gathers context on the way up, the outermost first") {
  CHECK(load().error().in("agent.yaml:12").message == "agent.yaml:12: notifier.interval: is not a number");
}

}  // namespace evictd::error_test
