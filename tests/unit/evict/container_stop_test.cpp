#include "evict/container_stop.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "fixture/captured_log.hpp"
#include "fixture/node_tree.hpp"
#include "fixture/pods.hpp"
#include "fixture/tree.hpp"
#include "os/now.hpp"

namespace evictd::evict::container_stop_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using fixture::container;
using fixture::dir;
using fixture::file;
using fixture::sidecar;
using Lines = std::vector<std::string>;

const core::PreStop bye{core::ExecHook{{"bye"}}};

/// A pod of the sidecars proxy and log and the main container web, whose ids are their names.
struct Scene {
  explicit Scene(const Lines& hooks = {}, const Lines& names = {"proxy", "log", "web"}) {
    auto spec = fixture::pod("a", {container("web")});
    spec.init_containers = {sidecar("proxy"), sidecar("log")};
    for (const auto& name : hooks) {
      if (name == "web") spec.containers[0].pre_stop = bye;
      if (name == "proxy") spec.init_containers[0].pre_stop = bye;
      if (name == "log") spec.init_containers[1].pre_stop = bye;
    }
    pods::RuntimePod running{.pod = std::make_shared<const core::Pod>(spec), .sandbox_id = "s1"};
    for (const auto& name : names) {
      running.containers.push_back(
          {.id = name, .name = name, .state = pods::ContainerState::Running, .cgroup = "/" + name});
      runtime::v1::Container listed;
      listed.set_id(name);
      runtime.put(listed, "{}");
    }
    pod = std::make_shared<const pods::RuntimePod>(std::move(running));
    runtime.start();
  }

  void begin(core::Duration grace_period, bool runs_hooks = true) {
    const ContainerStop::Parts parts{reactor.get_executor(), client, hierarchy};
    stop.emplace(parts, pod,
                 ContainerStop::Options{.grace_period = grace_period, .stop_timeout = 20s, .runs_hooks = runs_hooks});
    asio::co_spawn(reactor, stop->run(report), [this](const std::exception_ptr& thrown, ContainerStop::Outcome result) {
      if (thrown) std::rethrow_exception(thrown);
      outcome = result;
    });
  }
  template <class Done>
  [[nodiscard]] bool reaches(Done done) {
    return test::run_until(reactor, done);
  }
  void finish() {
    REQUIRE(reaches([&] { return outcome.has_value(); }));
  }
  /// The containers that were told to stop, in order.
  [[nodiscard]] Lines stopped() const {
    Lines ids;
    for (const auto& [id, grace] : runtime.stops()) ids.push_back(id);
    return ids;
  }

  test::FakeRuntime runtime;
  pods::RuntimePodPtr pod;
  fixture::Tree tree{fixture::v2_node({}, 0, {dir("web", {file("cgroup.events", "populated 1\n")})})};
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), 2s};
  Lines told{};
  const Report report = [this](const Progress& progress) { told.emplace_back(name(progress)); };
  std::optional<ContainerStop> stop{};
  std::optional<ContainerStop::Outcome> outcome{};
};

}  // namespace

TEST_CASE("the main containers end first, then the sidecars in reverse, and each has what is left of the time") {
  Scene scene;
  scene.begin(600s);
  scene.finish();
  CHECK(scene.stopped() == Lines{"web", "log", "proxy"});
  for (const auto& [id, grace] : scene.runtime.stops()) {
    CHECK(grace <= 600s);
    CHECK(grace > 500s);
  }
  CHECK(scene.outcome->any);
  CHECK_FALSE(scene.outcome->failed);
  CHECK(scene.runtime.calls("ExecSync") == 0);
}

TEST_CASE("hooks run at once, those of sidecars too, and each before its container is told to stop") {
  SUBCASE("to their end") {
    Scene scene{{"proxy", "web"}};
    scene.begin(600s);
    scene.finish();
    auto commands = scene.runtime.commands();
    std::ranges::sort(commands);
    CHECK(commands == Lines{"proxy bye", "web bye"});
    CHECK(scene.stopped() == Lines{"web", "log", "proxy"});
    CHECK(scene.told.empty());
  }
  SUBCASE("whatever its sidecar waits for") {
    Scene scene{{"proxy"}};
    scene.runtime.hang("StopContainer");
    scene.begin(600s);
    CHECK(scene.reaches([&] { return scene.runtime.calls("ExecSync") == 1; }));
    CHECK(scene.reaches([&] { return scene.runtime.calls("StopContainer") == 1; }));
  }
}

TEST_CASE("a hook that does not end costs its own container's time, which then has two seconds") {
  const fixture::CapturedLog log;
  Scene scene{{"web"}, {"web", "other"}};
  scene.runtime.hang("ExecSync");
  scene.begin(6s);
  scene.finish();
  CHECK(scene.runtime.calls("ExecSync") == 1);
  CHECK(scene.stopped() == Lines{"other", "web"});
  CHECK(scene.runtime.last_grace() == 2s);
  CHECK(log.lines() ==
        Lines{"default/a: the preStop hook of container web has not ended within the grace period of 6s"});
}

TEST_CASE("a hook that fails is logged, and its container is stopped all the same") {
  const fixture::CapturedLog log;
  Scene scene{{"web"}, {"web"}};
  scene.runtime.exit_with(7);
  scene.begin(600s);
  scene.finish();
  CHECK(scene.stopped() == Lines{"web"});
  CHECK(log.lines() == Lines{"default/a: the preStop hook of container web failed: its command ended with code 7"});
}

TEST_CASE("a hook is broken off when its container has no process left") {
  Scene scene{{"web"}, {"web"}};
  scene.runtime.hang("ExecSync");
  scene.begin(600s);
  REQUIRE(scene.reaches([&] { return scene.runtime.calls("ExecSync") == 1; }));
  // Once it was seen to run: what was never seen cannot be told from what cannot be read.
  const auto later = os::now() + 500ms;
  REQUIRE(scene.reaches([&] { return os::now() >= later; }));
  CHECK_FALSE(scene.outcome.has_value());
  scene.tree.write("cgroup/web/cgroup.events", "populated 0\n");
  scene.finish();
  CHECK(scene.stopped() == Lines{"web"});
}

TEST_CASE("another eviction has hooks broken off and waits ended, and the rest left to it") {
  Scene scene{{"web"}};
  scene.runtime.hang("ExecSync");
  scene.begin(600s);
  REQUIRE(scene.reaches([&] { return scene.runtime.calls("ExecSync") == 1; }));
  scene.stop->give_up();
  scene.finish();
  CHECK(scene.stop->is_given_up());
  CHECK(scene.stopped().empty());
  CHECK(scene.told.empty());
}

TEST_CASE("a sidecar waits no longer than the pod has time") {
  Scene scene{{}, {"log", "web"}};
  scene.runtime.hang("StopContainer");
  scene.begin(1s);
  CHECK(scene.reaches([&] { return scene.runtime.calls("StopContainer") == 2; }));
  CHECK(scene.told.empty());
}

TEST_CASE("where the runtime refuses to stop a container that is reported, and the sidecars do not wait for it") {
  Scene scene{{}, {"log", "web"}};
  scene.runtime.fail("StopContainer", 13);
  scene.begin(600s);
  scene.finish();
  CHECK(scene.outcome->failed);
  CHECK(scene.told == Lines{"failed", "failed"});
}

TEST_CASE("a runtime that is starting again refuses nothing: the container keeps its time until it is stopped") {
  Scene scene{{}, {"web"}};
  scene.runtime.fail("StopContainer", 2, "server is not initialized yet");  // as containerd says it
  scene.begin(600s);
  REQUIRE(scene.reaches([&] { return scene.runtime.calls("StopContainer") > 1; }));
  CHECK_FALSE(scene.outcome);
  scene.runtime.recover("StopContainer");
  scene.finish();
  CHECK_FALSE(scene.outcome->failed);
  CHECK(scene.told.empty());
  CHECK(scene.stopped() == Lines{"web"});
}

TEST_CASE("without a grace period there are no hooks and no order, and no time") {
  Scene scene{{"proxy", "log", "web"}};
  scene.begin(0s);
  scene.finish();
  CHECK(scene.runtime.calls("ExecSync") == 0);
  REQUIRE(scene.runtime.stops().size() == 3);
  for (const auto& [id, grace] : scene.runtime.stops()) CHECK(grace == 0s);
}

TEST_CASE("where hooks may have run none does, and the order stays") {
  Scene scene{{"proxy", "log", "web"}};
  scene.begin(600s, false);
  scene.finish();
  CHECK(scene.runtime.calls("ExecSync") == 0);
  CHECK(scene.stopped() == Lines{"web", "log", "proxy"});
}

TEST_CASE("of a pod without containers nothing is stopped") {
  Scene scene{{}, {}};
  scene.begin(600s);
  scene.finish();
  CHECK_FALSE(scene.outcome->any);
  CHECK_FALSE(scene.outcome->failed);
}

}  // namespace evictd::evict::container_stop_test
