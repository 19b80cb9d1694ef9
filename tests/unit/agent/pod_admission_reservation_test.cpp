// Pods that were admitted and are not there whole yet.
#include <doctest/doctest.h>
#include <evictd.pb.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/admission_scene.hpp"
#include "agent/pod_admission.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::agent::pod_admission_reservation_test {
namespace {

using namespace std::chrono_literals;
using namespace admission_scene;
using fixture::pod;

constexpr int requests_6_gib = 250;  // as an oom_score_adj, of 8 GiB

/// A node of 8 GiB on which sandboxes come before their containers.
struct Pulling : Scene {
  Pulling() {
    make_roomy();
    list_pods();
  }
  /// The runtime has the sandbox, and the image of the pod's container is being pulled.
  void start_sandbox(const std::string& name) {
    runtime.put(test::sandbox("s-" + name, name, name), test::sandbox_json("/kubepods/burstable/pod" + name));
    list_until(loop.tracker.pods()->size() + 1);
  }
  void start_container(const std::string& pod, const std::string& name, int oom_score_adj) {
    const auto requests_nothing = [&] {
      const auto& pods = *loop.tracker.pods();
      return std::ranges::any_of(pods, [&](const auto& each) { return each->uid == pod && each->containers.empty(); });
    };
    runtime.put(test::container("c-" + pod + name, "s-" + pod, name), test::container_json(oom_score_adj));
    loop.tracker.changed();
    REQUIRE(test::run_until(loop.reactor, [&] { return !requests_nothing(); }));
  }
  void remove_sandbox(const std::string& name) {
    runtime.remove_sandbox("s-" + name);
    list_until(loop.tracker.pods()->size() - 1);
  }
  [[nodiscard]] bool fits(const char* memory) {
    return admit({with_memory(pod("next"), memory)}, false).front().admitted();
  }
};

}  // namespace

TEST_CASE("what was admitted counts whole until its containers are there") {
  Pulling scene;
  CHECK(scene.admit({with_memory(pod("a"), "6Gi")}, true).front().admitted());
  scene.start_sandbox("a");
  CHECK_FALSE(scene.fits("3Gi"));
  scene.start_sandbox("c");
  CHECK_FALSE(scene.fits("3Gi"));
  CHECK(scene.fits("2Gi"));
  CHECK(scene.make_container(with_memory(pod("a"), "6Gi"), "main").admitted());
  scene.start_sandbox("d");
  SUBCASE("they come, and count by what the runtime says from then on") {
    scene.start_container("a", "main", requests_6_gib);
    CHECK_FALSE(scene.fits("3Gi"));
    CHECK(scene.fits("2Gi"));
    scene.runtime.remove_container("c-amain");
    scene.start_sandbox("e");
    CHECK(scene.fits("8Gi"));
  }
  SUBCASE("the pod goes") {
    scene.remove_sandbox("a");
    CHECK(scene.fits("8Gi"));
  }
  SUBCASE("they are awaited in vain") {
    scene.loop.clock.advance(5min);
    CHECK(scene.fits("8Gi"));
    scene.start_sandbox("e");
    CHECK(scene.fits("8Gi"));
  }
  SUBCASE("the pod goes for a critical one, and frees all of it") {
    Asking asking{scene.begin(with_memory(vital("vital"), "7Gi"))};
    CHECK_FALSE(asking.decide());
    REQUIRE(scene.loop.did("stop a"));
    scene.end("a");
    CHECK(asking.decide()->admitted());
    CHECK(scene.fits("1Gi"));
  }
}

TEST_CASE("of several containers those that are yet to come count while the first one is made") {
  Pulling scene;
  auto both = with_memory(pod("a"), "3Gi");
  both.containers.push_back(fixture::container("side", {{"memory", "3Gi"}}));
  CHECK(scene.admit({both}, true).front().admitted());
  scene.start_sandbox("a");
  CHECK(scene.make_container(with_memory(pod("a"), "3Gi"), "main").admitted());
  CHECK_FALSE(scene.fits("3Gi"));
  CHECK(scene.fits("2Gi"));
}

TEST_CASE("a sidecar that its pod has counts beside the container that is made, which does not tell of it") {
  Pulling scene;
  auto sandbox = test::sandbox("s-a", "a", "a");
  (*sandbox.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers": [{"name": "main"}], "initContainers": [{"name": "side", "restartPolicy": "Always",
          "resources": {"requests": {"memory": "6Gi"}}}]})";
  scene.runtime.put(sandbox, test::sandbox_json("/kubepods/burstable/poda"));
  scene.runtime.put(test::container("c-aside", "s-a", "side"), test::container_json(requests_6_gib));
  scene.list_until(1);
  REQUIRE_FALSE(scene.fits("3Gi"));
  CHECK_FALSE(scene.make_container(with_memory(pod("a"), "3Gi"), "main").admitted());
  CHECK(scene.make_container(with_memory(pod("a"), "1Gi"), "main").admitted());
}

TEST_CASE("a sandbox without a uid is another pod than the one of its name that it replaces") {
  Pulling scene;
  scene.runtime.put(test::sandbox("s-1", "web", "old"), test::sandbox_json("/kubepods/burstable/podold"));
  scene.list_until(1);
  auto named = with_memory(*scene.loop.tracker.pods()->front(), "6Gi");
  named.uid.clear();
  const auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
  asked->push_back({.pod = named, .from_runtime = true});
  REQUIRE(scene.answer(asked, true).front().admitted());

  scene.runtime.put(test::sandbox("s-2", "web", "new"), test::sandbox_json("/kubepods/burstable/podnew"));
  scene.runtime.remove_sandbox("s-1");
  scene.loop.tracker.changed();
  REQUIRE(test::run_until(scene.loop.reactor, [&] { return scene.loop.tracker.pods()->front()->uid == "new"; }));
  named.uid = "new";
  CHECK(scene.make_container(named, "main").admitted());
  CHECK(scene.fits("2Gi"));
  CHECK_FALSE(scene.fits("3Gi"));
}

TEST_CASE("of two pods that are there without containers the first to make one takes what it asks for") {
  Pulling scene;
  scene.start_sandbox("a");
  scene.start_sandbox("b");
  SUBCASE("before a list shows it") {
    CHECK(scene.make_container(with_memory(pod("a"), "5Gi"), "main").admitted());
    CHECK(scene.make_container(with_memory(pod("b"), "5Gi"), "main").reason() == "OutOfmemory");
    CHECK(scene.make_container(with_memory(pod("b"), "3Gi"), "main").admitted());
  }
  SUBCASE("unless its call ends before the answer, which leaves what it had before") {
    CHECK(scene.make_container(with_memory(pod("a"), "2Gi"), "main").admitted());
    {
      auto asked = std::make_shared<std::vector<api::AdmissionRequest>>();
      asked->push_back({.pod = with_memory(pod("a"), "5Gi"), .from_runtime = true, .container = "main"});
      Asking asking{scene.admission.admit(asked, true)};
      CHECK(asking.decide()->admitted());
      CHECK_FALSE(scene.fits("4Gi"));
    }
    CHECK(scene.fits("6Gi"));
    CHECK_FALSE(scene.fits("7Gi"));
  }
}

TEST_CASE("a container that is through is none that its pod has beside the next one") {
  Pulling scene;
  scene.start_sandbox("a");
  scene.start_container("a", "init", requests_6_gib);
  scene.runtime.put(test::container("c-ainit", "s-a", "init", runtime::v1::CONTAINER_EXITED),
                    test::container_json(requests_6_gib));
  scene.start_sandbox("b");
  CHECK(scene.make_container(with_memory(pod("a"), "6Gi"), "main").admitted());
  CHECK(scene.fits("2Gi"));
}

TEST_CASE("a resize of a pod whose containers are yet to come is kept in mind as any other") {
  Pulling scene;
  CHECK(scene.admit({with_memory(pod("a"), "6Gi")}, true).front().admitted());
  scene.start_sandbox("a");
  CHECK(scene.resize(with_memory(pod("a"), "7Gi"), true).admitted());
  scene.start_sandbox("b");
  CHECK(scene.fits("1Gi"));
  CHECK_FALSE(scene.fits("2Gi"));
}

}  // namespace evictd::agent::pod_admission_reservation_test
