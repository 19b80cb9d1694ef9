#include "evict/log_reclaim.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "evict/node_reclaim.hpp"
#include "fixture/tree.hpp"
#include "os/now.hpp"
#include "pods/pod_builder.hpp"

namespace evictd::evict::log_reclaim_test {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
namespace v1 = ::runtime::v1;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;
using test::container;
using test::run;
using test::sandbox;

/// Works when it is told to, at once unless it hangs.
struct HangingDisk {
  bool hangs = false;
  std::vector<std::pair<std::move_only_function<void()>, std::move_only_function<void()>>> held{};

  void go_on() {
    hangs = false;
    for (auto& [work, done] : std::exchange(held, {})) {
      work();
      done();
    }
  }
};

class DiskWorker final : public async::Worker {
 public:
  DiskWorker(asio::any_io_executor reactor, HangingDisk& disk) : reactor_{std::move(reactor)}, disk_{disk} {}
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done) override {
    if (disk_.hangs) return disk_.held.emplace_back(std::move(work), std::move(done)), void();
    work();
    asio::post(reactor_, std::move(done));
  }

 private:
  asio::any_io_executor reactor_;
  HangingDisk& disk_;
};

/// A running pod "web" whose container was restarted, a dead one "job", and the logs of both and of one that is gone.
struct Node {
  Tree tree{{dir("shop_web_u-web", {dir("app", {file("0.log", "ended"), file("0.log.1", "ended"),
                                                file("1.log", "ended"), file("2.log", "runs")})}),
             dir("shop_job_u-job", {dir("app", {file("0.log", "ended")})}),
             dir("shop_gone_u-gone", {dir("app", {file("0.log", "ended")})}), dir("lost+found")}};
  test::FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};
  HangingDisk disk;
  std::set<std::string, std::less<>> known;  // by others than the runtime
  std::unique_ptr<LogReclaimer> logs = reclaimer({.gone_for = 0s, .patience = 60s});

  Node() {
    runtime.put(sandbox("s-web", "web", "u-web"), "{}");
    put_container("c-web-0", "s-web", "shop_web_u-web", v1::CONTAINER_EXITED, 0);
    put_container("c-web-1", "s-web", "shop_web_u-web", v1::CONTAINER_EXITED, 1);
    put_container("c-web-2", "s-web", "shop_web_u-web", v1::CONTAINER_RUNNING, 2);
    auto dead = sandbox("s-job", "job", "u-job");
    dead.set_state(v1::SANDBOX_NOTREADY);
    runtime.put(dead, "{}");
    put_container("c-job", "s-job", "shop_job_u-job", v1::CONTAINER_EXITED, 0);
    runtime.start();
  }

  std::unique_ptr<LogReclaimer> reclaimer(LogReclaimerOptions options) {
    return std::make_unique<LogReclaimer>(
        reactor.get_executor(), client, std::make_unique<DiskWorker>(reactor.get_executor(), disk), tree.path(),
        [this](std::string_view uid) { return known.contains(uid); }, options);
  }
  void put_container(const std::string& id, const std::string& sandbox_id, const std::string& directory,
                     v1::ContainerState state, std::uint32_t attempt) {
    auto added = container(id, sandbox_id, "app", state, 1 + attempt);
    added.mutable_metadata()->set_attempt(attempt);
    runtime.put(added, "{}");
    runtime.set_log_path(id, tree.path(directory + "/app/" + std::to_string(attempt) + ".log"));
  }
  ReclaimResult reclaim() {
    NodeReclaimer reclaimer{client, {}, logs.get()};
    return run(reactor, reclaimer.run(true, false));
  }
  bool look() { return run(reactor, logs->look()).has_value(); }
  std::vector<Error> remove_gone() { return run(reactor, logs->remove_gone(os::now() + 60s)); }
  [[nodiscard]] bool has(const std::string& path) const { return fs::exists(tree.path(path)); }
};

}  // namespace

TEST_CASE("a container's log goes with it; those of the container that is kept and of the one that runs stay") {
  Node node;
  node.known.insert("u-gone");
  const auto result = node.reclaim();
  CHECK(result.errors.empty());
  CHECK(result.containers_removed == 2);
  CHECK_FALSE(node.has("shop_web_u-web/app/0.log"));
  CHECK_FALSE(node.has("shop_web_u-web/app/0.log.1"));
  CHECK(node.has("shop_web_u-web/app/1.log"));
  CHECK(node.has("shop_web_u-web/app/2.log"));
  CHECK_FALSE(node.has("shop_job_u-job/app/0.log"));
  CHECK(node.has("shop_gone_u-gone/app/0.log"));
}

TEST_CASE("a log that the runtime places elsewhere stays, and its container goes all the same") {
  Node node;
  const Tree other{file("0.log", "precious")};
  SUBCASE("outside") { node.runtime.set_log_path("c-job", other.path("0.log")); }
  SUBCASE("at another pod") { node.runtime.set_log_path("c-job", node.tree.path("shop_web_u-web/app/2.log")); }
  SUBCASE("on a way round") {
    node.runtime.set_log_path("c-job", node.tree.path("shop_job_u-job").native() + "/../shop_web_u-web/app/2.log");
  }
  SUBCASE("nowhere") { node.runtime.set_log_path("c-job", ""); }
  const auto result = node.reclaim();
  CHECK(result.errors.empty());
  CHECK(result.containers_removed == 2);
  CHECK(fs::exists(other.path("0.log")));
  CHECK(node.has("shop_web_u-web/app/2.log"));
}

TEST_CASE("a runtime that does not tell where a log is has its container removed all the same") {
  Node node;
  node.runtime.fail("ContainerStatus", 13);
  const auto result = node.reclaim();
  CHECK(result.containers_removed == 2);
  REQUIRE(result.errors.size() == 2);
  CHECK(result.errors[0].message.starts_with("cannot remove the log of container app (c-"));
  CHECK(node.has("shop_web_u-web/app/0.log"));
}

TEST_CASE("the logs of a pod that is gone go at the second look, not at the first, and not while somebody knows it") {
  Node node;
  node.logs = node.reclaimer({.gone_for = 1ns, .patience = 60s});
  node.known.insert("u-gone");
  CHECK(node.remove_gone().empty());
  CHECK(node.remove_gone().empty());
  CHECK(node.has("shop_gone_u-gone"));
  node.known.clear();
  REQUIRE(node.look());
  node.known.insert("u-gone");
  REQUIRE(node.look());  // it was there in between: it begins anew
  node.known.clear();
  REQUIRE(node.look());
  CHECK(node.has("shop_gone_u-gone"));
  CHECK(node.remove_gone().empty());
  CHECK_FALSE(node.has("shop_gone_u-gone"));
  CHECK(node.has("lost+found"));
  CHECK(node.has("shop_web_u-web/app/2.log"));
  CHECK(node.has("shop_job_u-job/app/0.log"));  // its sandbox is there, dead as it is
}

TEST_CASE("a pod that has been gone for a short while only keeps its logs") {
  Node node;
  node.logs = node.reclaimer({.gone_for = 1h, .patience = 60s});
  REQUIRE(node.look());
  CHECK(node.remove_gone().empty());
  CHECK(node.has("shop_gone_u-gone"));
}

TEST_CASE("a pod of which a container is left without its sandbox is not gone") {
  Node node;
  auto orphan = container("c-gone", "s-gone", "app", v1::CONTAINER_EXITED);
  (*orphan.mutable_labels())["io.kubernetes.pod.uid"] = "u-gone";
  node.runtime.put(orphan, "{}");
  REQUIRE(node.look());
  CHECK(node.remove_gone().empty());
  CHECK(node.has("shop_gone_u-gone"));
}

TEST_CASE("a look at very many directories lets the reactor do other work in between") {
  Node node;
  for (int pod = 0; pod < 1000; ++pod) node.tree.add("", dir("shop_gone_" + std::to_string(pod)));
  int in_this_turn = 0;
  int most = 0;
  LogReclaimer logs{node.reactor.get_executor(),
                    node.client,
                    std::make_unique<DiskWorker>(node.reactor.get_executor(), node.disk),
                    node.tree.path(),
                    [&](std::string_view) {
                      most = std::max(most, ++in_this_turn);
                      return true;
                    },
                    {.gone_for = 0s, .patience = 60s}};
  bool looked = false;
  const std::function<void()> other_work = [&] {
    in_this_turn = 0;
    if (!looked) asio::post(node.reactor, other_work);
  };
  other_work();
  const auto look = [&]() -> asio::awaitable<bool> {
    const auto found = co_await logs.look();
    looked = true;
    co_return found.has_value();
  };
  CHECK(run(node.reactor, look()));
  CHECK(most >= 1);
  CHECK(most <= 500);
}

TEST_CASE("a pod whose uid has underlines is found by the end of the name") {
  Node node;
  node.tree.add("", dir("shop_odd_u_1_2"));
  node.runtime.put(sandbox("s-odd", "odd", "u_1_2"), "{}");
  REQUIRE(node.look());
  CHECK(node.remove_gone().empty());
  CHECK(node.has("shop_odd_u_1_2"));
}

TEST_CASE("while the runtime does not list its pods nobody is gone") {
  Node node;
  REQUIRE(node.look());
  SUBCASE("sandboxes") { node.runtime.fail("ListPodSandbox", 13); }
  SUBCASE("containers") { node.runtime.fail("ListContainers", 13); }
  CHECK(node.remove_gone().size() == 1);
  CHECK(node.has("shop_gone_u-gone"));
}

TEST_CASE("a disk that does not answer is not waited for, nor asked again until it does") {
  Node node;
  node.logs = node.reclaimer({.gone_for = 0s, .patience = 50ms});
  node.disk.hangs = true;
  CHECK_FALSE(node.look());
  CHECK(node.disk.held.size() == 1);
  const auto errors = node.remove_gone();
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message == node.tree.path().native() + ": its disk does not answer in time: logs stay");
  CHECK(node.disk.held.size() == 1);
  node.disk.go_on();
  REQUIRE(node.look());
  CHECK(node.remove_gone().empty());
  CHECK_FALSE(node.has("shop_gone_u-gone"));
}

TEST_CASE("logs that cannot be read are one error, as often as they are looked for") {
  Node node;
  // A directory no longer: what opening it fails with where there are no more descriptors takes the same way.
  const auto root = node.tree.path("shop_web_u-web/app/2.log");
  node.logs = std::make_unique<LogReclaimer>(
      node.reactor.get_executor(), node.client, std::make_unique<DiskWorker>(node.reactor.get_executor(), node.disk),
      root, [](std::string_view) { return false; }, LogReclaimerOptions{.gone_for = 0s, .patience = 60s});
  for (int time = 0; time < 3; ++time) {
    const auto errors = node.remove_gone();
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].message == root.native() + ": Not a directory");
  }
}

TEST_CASE("a pod that comes back while others' logs are removed keeps its own") {
  Node node;
  node.tree.add("", dir("shop_a_u-a"));
  node.tree.add("", dir("shop_z_u-z"));
  REQUIRE(node.look());
  int asked = 0;
  LogReclaimer logs{node.reactor.get_executor(),
                    node.client,
                    std::make_unique<DiskWorker>(node.reactor.get_executor(), node.disk),
                    node.tree.path(),
                    // Not at the look, but when its turn comes.
                    [&](std::string_view uid) { return uid == "u-z" && ++asked > 1; },
                    {.gone_for = 0s, .patience = 60s}};
  CHECK(run(node.reactor, logs.remove_gone(os::now() + 60s)).empty());
  CHECK(asked == 2);
  CHECK_FALSE(node.has("shop_a_u-a"));
  CHECK(node.has("shop_z_u-z"));
}

}  // namespace evictd::evict::log_reclaim_test
