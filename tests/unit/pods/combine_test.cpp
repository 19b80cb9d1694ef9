#include "pods/combine.hpp"

#include <doctest/doctest.h>

#include <set>

#include "fixture/pods.hpp"
#include "fixture/random.hpp"

namespace evictd::pods::combine_test {
namespace {

using fixture::container;
using fixture::pod;
using fixture::quantity;
using fixture::with_annotation;
using fixture::with_priority;
using enum SpecOrigin;

core::Pod with_uid(core::Pod pod, std::string uid) {
  pod.uid = std::move(uid);
  return pod;
}

/// As the kubelet hands a static pod to the runtime.
core::Pod static_pod(std::string name, const std::string& hash) {
  auto result = with_uid(pod(std::move(name)), hash);
  result.annotations = {{"kubernetes.io/config.source", "file"}, {"kubernetes.io/config.hash", hash}};
  return result;
}

/// As the kubelet shows that static pod to the API server.
core::Pod mirror_pod(std::string name, const std::string& hash, std::string uid) {
  auto result = with_uid(static_pod(std::move(name), hash), std::move(uid));
  result.annotations["kubernetes.io/config.mirror"] = hash;
  return result;
}

struct Source {
  SpecOrigin origin;
  std::vector<core::Pod> pods;
};

core::PodList list(const std::vector<core::Pod>& pods) {
  core::PodList result;
  for (const auto& pod : pods) result.push_back(std::make_shared<const core::Pod>(pod));
  return result;
}

core::PodListPtr combined(const std::vector<core::Pod>& listed, const std::vector<Source>& sources,
                          const TrustedNamespaces& trusted) {
  std::vector<SpecIndex> indices;
  for (const auto& [origin, pods] : sources)
    indices.emplace_back(Specs{origin, std::make_shared<const core::PodList>(list(pods))}, "Node1");
  return combine(list(listed), indices, trusted);
}

/// Where all are trusted, unless told otherwise: trust_test.cpp has the rest.
core::Pod one(const core::Pod& listed, const std::vector<Source>& sources,
              const TrustedNamespaces& trusted = TrustedNamespaces{{"*"}}) {
  const auto result = combined({listed}, sources, trusted);
  REQUIRE(result->size() == 1);
  return *result->front();
}

}  // namespace

TEST_CASE("the volumes of a spec are the spec's word, whatever the pod claims") {
  core::Pod listed = fixture::pod("web");
  listed.volumes = {fixture::empty_dir("claimed")};
  listed.volumes_are_claimed = true;
  auto spec = fixture::pod("web");
  spec.volumes = {fixture::empty_dir("real")};
  const auto made = with_spec(listed, spec);
  CHECK(made.volumes == spec.volumes);
  CHECK_FALSE(made.volumes_are_claimed);
}

TEST_CASE("a pod takes all that its spec says and keeps what it runs as") {
  auto listed = pod("a", {container("main", {}, {{"memory", "1Gi"}})});
  listed.status_qos = core::QosClass::Burstable;
  listed.annotations = {{"kept", "1"}, {"shared", "old"}};
  listed.labels = {{"old", "1"}};
  auto spec = pod("a", {container("main", {{"memory", "64Mi"}}), container("side")});
  spec.init_containers = {container("setup", {{"memory", "128Mi"}})};
  spec.resources.emplace();
  spec.overhead = fixture::amounts({{"memory", "16Mi"}});
  spec.taken = fixture::amounts({{"memory", "1Gi"}});
  spec.volumes = {fixture::empty_dir("cache", "10Mi")};
  spec.tolerations = {{.key = "k", .op = "Exists", .value = "", .effect = ""}};
  spec.priority = 7;
  spec.priority_class_name = "high";
  spec.termination_grace_period_seconds = 12;
  spec.labels = {{"app", "a"}};
  spec.node_selector = {{"disk", "ssd"}};
  spec.host_network = true;
  spec.phase = "Running";
  spec.annotations = {{"shared", "new"}, {"added", "1"}};

  auto expected = spec;
  expected.annotations = {{"kept", "1"}, {"shared", "new"}, {"added", "1"}};
  expected.status_qos = core::QosClass::Burstable;
  CHECK(one(listed, {{ApiServer, {spec}}}) == expected);
  spec.status_qos = core::QosClass::Guaranteed;
  CHECK(one(listed, {{ApiServer, {spec}}}).status_qos == core::QosClass::Guaranteed);
}

TEST_CASE("the node's ports are those of the spec's containers") {
  auto listed = pod("a");
  listed.host_ports = {{.port = 80}};
  auto spec = pod("a");
  spec.containers = {{.name = "main", .host_ports = {{.port = 80}}}};
  const auto completed = one(listed, {{Kubelet, {spec}}});
  CHECK(completed.host_ports.empty());
  CHECK(completed.containers.at(0).host_ports == spec.containers[0].host_ports);
}

TEST_CASE("what a spec does not say stays as it was inferred") {
  auto listed = with_priority(pod("a"), 9);
  listed.priority_class_name = "inferred";
  listed.termination_grace_period_seconds = 30;
  listed.status_qos = core::QosClass::BestEffort;
  CHECK(one(listed, {{Manifests, {pod("a")}}}) == listed);
}

TEST_CASE("the richest source that knows a pod counts") {
  const auto listed = pod("a");
  const Source api{ApiServer, {with_priority(pod("a"), 1)}};
  const Source kubelet{Kubelet, {with_priority(pod("a"), 2)}};
  const Source manifests{Manifests, {with_priority(with_uid(pod("a"), ""), 3)}};
  CHECK(one(listed, {api, kubelet, manifests}).priority == 1);
  CHECK(one(listed, {{ApiServer, {}}, kubelet, manifests}).priority == 2);
  CHECK(one(listed, {{ApiServer, {}}, {Kubelet, {}}, manifests}).priority == 3);
  CHECK_FALSE(one(listed, {{ApiServer, {}}, {Kubelet, {}}, {Manifests, {}}}).priority.has_value());
}

TEST_CASE("a poorer source that knows the uid goes before a richer one that knows the name only") {
  const auto listed = static_pod("web-node1", "h2");
  const Source api{ApiServer, {with_priority(mirror_pod("web-node1", "h1", "u9"), 1)}};
  const Source kubelet{Kubelet, {with_priority(static_pod("web-node1", "h2"), 2)}};
  CHECK(one(listed, {api, kubelet}).priority == 2);
  CHECK(one(listed, {api}).priority == 1);
}

TEST_CASE("a pod of the same name and another uid is another pod") {
  const auto listed = with_uid(pod("web-0"), "old");
  const auto later = with_priority(with_uid(pod("web-0"), "new"), 1);
  CHECK_FALSE(one(listed, {{ApiServer, {later}}, {Kubelet, {later}}, {Manifests, {later}}}).priority.has_value());
}

TEST_CASE("a static pod is found by the hash that its mirror pod carries, and stays critical") {
  const auto listed = static_pod("proxy-node1", "h1");
  const auto mirror = with_priority(mirror_pod("proxy-node1", "h1", "u9"), 5);
  const auto found = one(listed, {{ApiServer, {mirror}}});
  CHECK(found.priority == 5);
  CHECK(found.uid == "h1");
  CHECK(core::is_critical(found));
  CHECK(core::is_critical(one(static_pod("x", "h2"), {{ApiServer, {}}})));
}

TEST_CASE("nobody takes a static pod's place by an annotation") {
  const auto forged = with_priority(mirror_pod("mine", "h1", "u9"), 5);
  CHECK_FALSE(one(static_pod("proxy-node1", "h1"), {{ApiServer, {forged}}}).priority.has_value());
  const auto same_name = with_priority(mirror_pod("web", "u1", "u9"), 5);
  auto from_api = with_annotation(with_uid(pod("web"), "u1"), "kubernetes.io/config.source", "api");
  CHECK_FALSE(one(from_api, {{ApiServer, {same_name}}}).priority.has_value());
}

TEST_CASE("a spec does not make a static pod an ordinary one") {
  auto spec = with_annotation(static_pod("proxy-node1", "h1"), "kubernetes.io/config.source", "api");
  CHECK(core::is_critical(one(static_pod("proxy-node1", "h1"), {{Kubelet, {spec}}})));
}

TEST_CASE("a manifest is that of the pod that the kubelet named after the node") {
  auto manifest = with_uid(with_priority(pod("web-node1"), 4), "");  // as the source names it
  CHECK(one(static_pod("web-node1", "h1"), {{Manifests, {manifest}}}).priority == 4);
  SUBCASE("without a kubelet also under its own name") {
    CHECK(one(with_uid(pod("web"), "u1"), {{Manifests, {manifest}}}).priority == 4);
    CHECK_FALSE(one(static_pod("web", "h1"), {{Manifests, {manifest}}}).priority.has_value());
    CHECK_FALSE(one(with_uid(pod("web"), "u1"), {{Kubelet, {manifest}}}).priority.has_value());
  }
  SUBCASE("but never of a pod from the API server") {
    const auto api = with_annotation(with_uid(pod("web-node1"), "u1"), "kubernetes.io/config.source", "api");
    CHECK_FALSE(one(api, {{Manifests, {manifest}}}).priority.has_value());
  }
  SUBCASE("with its own uid, of another version of it as well") {
    manifest.uid = "mine";
    CHECK(one(static_pod("web-node1", "mine"), {{Manifests, {manifest}}}).priority == 4);
    CHECK(one(static_pod("web-node1", "h1"), {{Manifests, {manifest}}}).priority == 4);
    CHECK_FALSE(one(with_uid(pod("web-node1"), "u1"), {{Manifests, {manifest}}}).priority.has_value());
  }
}

TEST_CASE("property: whatever sources say, the list is the runtime's, each pod itself, and none less critical by it") {
  for (const auto seed : fixture::seeds(300)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    const auto any_pod = [&] {
      auto name = random.pick<std::string>({"a", "b", "c-node1", "d-node1"});
      auto uid = random.pick<std::string>({"", "1", "2", "3", "4"});
      auto made = random.chance(30)   ? static_pod(name, uid)
                  : random.chance(20) ? mirror_pod(name, random.pick<std::string>({"1", "2"}), uid)
                                      : with_uid(pod(name), uid);
      if (random.chance(50)) made.priority = static_cast<std::int32_t>(random.between(-5, 5));
      if (random.chance(10)) made.containers.clear();
      return made;
    };
    std::vector<core::Pod> listed;
    for (auto i = random.between(0, 5); i > 0; --i) listed.push_back(any_pod());
    std::vector<Source> sources;
    for (const auto origin : {ApiServer, Kubelet, Manifests}) {
      if (random.chance(20)) continue;
      sources.push_back({origin, {}});
      for (auto i = random.between(0, 5); i > 0; --i) sources.back().pods.push_back(any_pod());
    }
    const auto result = combined(listed, sources, TrustedNamespaces{{"*"}});
    REQUIRE(result->size() == listed.size());
    for (std::size_t i = 0; i < listed.size(); ++i) {
      const auto& pod = *(*result)[i];
      CHECK(pod.uid == listed[i].uid);
      CHECK(pod.key() == listed[i].key());
      CHECK(pod.containers.size() >= listed[i].containers.size());
      if (core::is_critical(listed[i])) CHECK(core::is_critical(pod));
    }
  }
}

}  // namespace evictd::pods::combine_test
