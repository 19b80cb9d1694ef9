#include "admission/taint.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::taint_test {
namespace {

const core::Taint taint{.key = "example.org/wet", .value = "v", .effect = "NoSchedule"};

bool tolerated_by(core::Toleration toleration) {
  auto pod = fixture::pod("a");
  pod.tolerations = {std::move(toleration)};
  return tolerates(pod, taint);
}

}  // namespace

TEST_CASE("a pod without tolerations tolerates no taint") { CHECK_FALSE(tolerates(fixture::pod("a"), taint)); }

TEST_CASE("Exists covers the taint of its key whatever the value, and all taints without a key") {
  CHECK(tolerated_by({.key = "example.org/wet", .op = "Exists", .value = "", .effect = ""}));
  CHECK(tolerated_by({.key = "", .op = "Exists", .value = "", .effect = ""}));
  CHECK_FALSE(tolerated_by({.key = "example.org/dry", .op = "Exists", .value = "", .effect = ""}));
}

TEST_CASE("Equal, which is what no operator means, covers key and value alike") {
  for (const auto* op : {"Equal", ""}) {
    CHECK(tolerated_by({.key = "example.org/wet", .op = op, .value = "v", .effect = ""}));
    CHECK_FALSE(tolerated_by({.key = "example.org/wet", .op = op, .value = "other", .effect = ""}));
    CHECK_FALSE(tolerated_by({.key = "", .op = op, .value = "v", .effect = ""}));
  }
}

TEST_CASE("an effect must be the taint's, if there is one") {
  CHECK(tolerated_by({.key = "example.org/wet", .op = "Exists", .value = "", .effect = "NoSchedule"}));
  CHECK_FALSE(tolerated_by({.key = "example.org/wet", .op = "Exists", .value = "", .effect = "NoExecute"}));
}

TEST_CASE("an unknown operator covers nothing") {
  CHECK_FALSE(tolerated_by({.key = "example.org/wet", .op = "In", .value = "v", .effect = ""}));
}

TEST_CASE("one toleration of several is enough") {
  auto pod = fixture::pod("a");
  pod.tolerations = {{.key = "other", .op = "Exists", .value = "", .effect = ""},
                     {.key = "example.org/wet", .op = "Exists", .value = "", .effect = ""}};
  CHECK(tolerates(pod, taint));
}

}  // namespace evictd::admission::taint_test
