#include "admission/shutdown_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::shutdown_handler_test {
namespace {

Verdict admit(const core::Pod& pod, bool shutting_down) {
  const NodeSnapshot node{.shutting_down = shutting_down};
  return ShutdownHandler{}.admit({.pod = pod, .other_pods = {}, .node = node});
}

}  // namespace

TEST_CASE("a node that stays up admits") { CHECK(admit(fixture::pod("a"), false) == Verdict::admit()); }

TEST_CASE("a node that shuts down admits nobody, critical pods neither") {
  const auto rejected = Verdict::reject("NodeShutdown", "Pod was rejected as the node is shutting down.");
  CHECK(admit(fixture::pod("a"), true) == rejected);
  CHECK(admit(fixture::with_priority(fixture::pod("a"), 2'000'001'000), true) == rejected);
}

}  // namespace evictd::admission::shutdown_handler_test
