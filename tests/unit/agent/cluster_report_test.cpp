#include "agent/cluster_report.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::agent::cluster_report_test {
namespace {

using namespace std::chrono_literals;

evict::EvictionRecord record_of(core::Pod pod, core::EvictionCause cause) {
  return {{.pod = std::make_shared<const core::Pod>(std::move(pod)),
           .cause = cause,
           .message = {"why. ", {{"starved_resource", "memory"}}}},
          {},
          7};
}

}  // namespace

TEST_CASE("the cluster learns of an eviction what its record says") {
  auto pod = fixture::pod("web");
  pod.uid = "1234";
  const auto before = std::chrono::system_clock::now();
  const auto report =
      eviction_report(record_of(pod, core::Signal::MemoryAvailable), std::chrono::steady_clock::now() - 10s);
  CHECK(report.name_space == "default");
  CHECK(report.name == "web");
  CHECK(report.uid == "1234");
  CHECK(report.id == 7);
  CHECK(report.static_hash.empty());
  CHECK_FALSE(report.api_uid.has_value());
  CHECK(report.message.text == "why. ");
  CHECK(report.message.annotations.at("starved_resource") == "memory");
  CHECK(report.disruption == "why. ");
  CHECK(report.time <= before);
  CHECK(report.time >= before - 20s);
}

TEST_CASE("a limit of its own is no threshold") {
  const auto report = eviction_report(record_of(fixture::pod("web"), core::LocalStorageLimit::EmptyDir),
                                      std::chrono::steady_clock::now());
  CHECK_FALSE(report.disruption.has_value());
}

TEST_CASE("a pod that made room or went down with the node says so") {
  const auto report_of = [](core::Displacement displacement) {
    return eviction_report(record_of(fixture::pod("web"), displacement), std::chrono::steady_clock::now());
  };
  const auto preempted = report_of(core::Displacement::Preemption);
  CHECK(preempted.reason == "Preempting");
  CHECK(preempted.disruption == "Pod was preempted by Kubelet to accommodate a critical pod.");
  CHECK(preempted.message.text == "why. ");
  CHECK(preempted.has_event);
  const auto terminated = report_of(core::Displacement::NodeShutdown);
  CHECK(terminated.reason == "Terminated");
  CHECK(terminated.disruption == "why. ");
  CHECK_FALSE(terminated.has_event);
}

TEST_CASE("a static pod is known by the hash that its mirror carries") {
  const auto hash_of = [](const core::Pod& pod) {
    return eviction_report(record_of(pod, core::Signal::MemoryAvailable), std::chrono::steady_clock::now()).static_hash;
  };
  const auto from_file = fixture::with_annotation(fixture::pod("etcd"), "kubernetes.io/config.source", "file");
  CHECK(hash_of(from_file) == "etcd");  // its uid
  CHECK(hash_of(fixture::with_annotation(from_file, "kubernetes.io/config.hash", "abc")) == "abc");
  CHECK(hash_of(fixture::with_annotation(fixture::pod("web"), "kubernetes.io/config.source", "api")).empty());
}

}  // namespace evictd::agent::cluster_report_test
