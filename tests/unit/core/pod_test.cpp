#include "core/pod.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::core::pod_test {

using fixture::pod;
using fixture::with_annotation;
using fixture::with_priority;

TEST_CASE("static pods, mirror pods and those of system priority are critical") {
  CHECK_FALSE(is_critical(pod("a")));
  CHECK(is_critical(with_annotation(pod("a"), "kubernetes.io/config.source", "file")));
  CHECK(is_critical(with_annotation(pod("a"), "kubernetes.io/config.source", "http")));
  CHECK_FALSE(is_critical(with_annotation(pod("a"), "kubernetes.io/config.source", "api")));
  CHECK(is_critical(with_annotation(pod("a"), "kubernetes.io/config.mirror", "")));
  CHECK(is_critical(with_priority(pod("a"), 2'000'000'000)));
  CHECK_FALSE(is_critical(with_priority(pod("a"), 1'999'999'999)));
}

TEST_CASE("a priority class by itself makes no pod critical") {
  auto named = pod("a");
  named.priority_class_name = "system-node-critical";
  CHECK_FALSE(is_critical(named));
}

TEST_CASE("a pod is known by namespace and name, a class by its Kubernetes name") {
  CHECK(pod("a").key() == "default/a");
  CHECK(name(QosClass::BestEffort) == "BestEffort");
  CHECK(name(QosClass::Burstable) == "Burstable");
  CHECK(name(QosClass::Guaranteed) == "Guaranteed");
}

}  // namespace evictd::core::pod_test
