#include "pods/cri_pods.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <chrono>

#include "async/turns.hpp"
#include "core/pod_resources.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "pods/pod_builder.hpp"
#include "pods/verbose_status.hpp"

namespace evictd::pods::cri_pods_test {

using namespace evictd;
using pods::ContainerState;
using test::container;
using test::container_json;
using test::run;
using test::sandbox;
using test::sandbox_json;
namespace asio = boost::asio;
namespace v1 = ::runtime::v1;

namespace {

constexpr std::int64_t MiB = 1 << 20;

struct Fixture {
  test::FakeRuntime runtime;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), test::patience};
  pods::CriPods pods{client, 1000 * MiB, pods::TrustedNamespaces{{"*"}}};

  Fixture() { runtime.start(); }

  Result<void> try_refresh() { return run(reactor, pods.refresh()); }
  void refresh() {
    const auto refreshed = try_refresh();
    REQUIRE_MESSAGE(refreshed.has_value(), (refreshed ? "" : refreshed.error().message));
  }

  void add_pod(const std::string& name, std::int64_t created_at) {
    runtime.put(sandbox("s-" + name, name, "u-" + name, created_at), sandbox_json("/kubepods/burstable/podu-" + name));
    runtime.put(container("c-" + name, "s-" + name, "app"), container_json(900, 200 * MiB, 42));
  }

  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& pod : *pods.pods()) keys.push_back(pod->key());
    return keys;
  }
};

using Keys = std::vector<std::string>;

}  // namespace

TEST_CASE("before the first refresh there are no pods") {
  Fixture f;
  CHECK(f.pods.pods()->empty());
  CHECK(f.pods.runtime_pods().empty());
  CHECK(f.pods.find("u-web") == nullptr);
}

TEST_CASE("a pod is found by the name of its cgroup, whatever its uid has in it") {
  Fixture f;
  f.runtime.put(sandbox("s-1", "web", "my_pod-1", 1), sandbox_json("kubepods-burstable-podmy_pod_1.slice"));
  f.refresh();
  const auto pod = f.pods.find("my_pod-1");
  REQUIRE(pod);
  CHECK(pod->cgroup == "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podmy_pod_1.slice");
  CHECK(f.pods.find("my-pod-1") == nullptr);
  CHECK(f.pods.find(*pods::named_uid("kubepods-burstable-podmy_pod_1.slice")) == pod);
  CHECK(f.pods.find(*pods::named_uid("podmy_pod-1")) == pod);
  CHECK(f.pods.find(*pods::named_uid("podmy_pod_1")) == nullptr);
}

TEST_CASE("a refresh finds the ready pods with what it takes to rank, measure and stop them") {
  Fixture f;
  f.add_pod("web", 2);
  f.add_pod("db", 1);
  auto stopped = sandbox("s-old", "old", "u-old");
  stopped.set_state(v1::SANDBOX_NOTREADY);
  f.runtime.put(stopped, "{}");
  f.runtime.put(container("c-old", "s-old", "app", v1::CONTAINER_EXITED), "{}");
  f.runtime.put(container("c-orphan", "s-none", "app"), "{}");

  f.refresh();
  CHECK(f.keys() == Keys{"shop/db", "shop/web"});  // in the order of their creation
  const auto web = f.pods.find("u-web");
  REQUIRE(web);
  CHECK(web->pod == f.pods.pods()->at(1));
  CHECK(web->sandbox_id == "s-web");
  CHECK(web->cgroup == "/kubepods/burstable/podu-web");
  REQUIRE(web->containers.size() == 1);
  CHECK(web->containers[0].id == "c-web");
  CHECK(web->containers[0].state == ContainerState::Running);
  CHECK(web->containers[0].pid == 42);
  CHECK(web->pod->containers.at(0).resources.requests.at("memory").value() == 100 * MiB);
  CHECK(f.pods.take_warnings().empty());
}

TEST_CASE("statuses are read once, not at every refresh") {
  Fixture f;
  f.add_pod("web", 1);
  for (int i = 0; i < 3; ++i) f.refresh();
  CHECK(f.runtime.calls("ListPodSandbox") == 3);
  CHECK(f.runtime.calls("PodSandboxStatus") == 1);
  CHECK(f.runtime.calls("ContainerStatus") == 1);

  f.add_pod("db", 2);
  f.refresh();
  CHECK(f.keys() == Keys{"shop/web", "shop/db"});
  CHECK(f.runtime.calls("PodSandboxStatus") == 2);
  CHECK(f.runtime.calls("ContainerStatus") == 2);
}

TEST_CASE("what a sandbox is annotated with is read once, too: its annotations do not change") {
  Fixture f;
  const auto annotate = [&](const std::string& request) {
    auto annotated = sandbox("s-web", "web", "u-web");
    (*annotated.mutable_annotations())["evictd.io/pod-spec"] =
        R"({"containers": [{"name": "main", "resources": {"requests": {"memory": ")" + request + R"("}}}]})";
    f.runtime.put(annotated, sandbox_json("/kubepods/burstable/podu-web"));
    f.refresh();
    return f.pods.find("u-web")->pod->containers.at(0).resources.requests.at("memory").to_string();
  };
  CHECK(annotate("1Mi") == "1Mi");
  CHECK(annotate("2Mi") == "1Mi");
  f.runtime.remove_sandbox("s-web");
  f.refresh();
  CHECK(annotate("3Mi") == "3Mi");
}

TEST_CASE("a container's status is read again once it has started") {
  Fixture f;
  f.add_pod("web", 1);
  f.runtime.put(container("c-web", "s-web", "app", v1::CONTAINER_CREATED), container_json(900));
  f.refresh();
  CHECK(f.pods.find("u-web")->containers.at(0).pid == 0);

  f.runtime.put(container("c-web", "s-web", "app"), container_json(900, 0, 77));
  f.refresh();
  f.refresh();
  CHECK(f.pods.find("u-web")->containers.at(0).pid == 77);
  CHECK(f.runtime.calls("ContainerStatus") == 2);
}

TEST_CASE("a list in which nothing is new leaves the pods as they are, and one with news the others") {
  Fixture f;
  f.add_pod("web", 1);
  f.add_pod("db", 2);
  f.refresh();
  const auto [web, db] = std::pair(f.pods.find("u-web"), f.pods.find("u-db"));
  const auto list = f.pods.pods();
  f.refresh();
  CHECK(f.pods.pods() == list);
  CHECK(f.pods.find("u-web") == web);
  CHECK(f.pods.find("u-db") == db);

  SUBCASE("a container that has come") {
    f.runtime.put(container("c-new", "s-db", "new"), container_json(900, 0, 43));
    f.refresh();
    REQUIRE(f.pods.find("u-db")->containers.size() == 2);
    CHECK(f.pods.find("u-db")->containers[1].pid == 43);
    CHECK(f.runtime.calls("ContainerStatus") == 3);
  }
  SUBCASE("a container in the place of another") {
    f.runtime.remove_container("c-db");
    f.runtime.put(container("c-new", "s-db", "app"), container_json(900, 0, 43));
    f.refresh();
    REQUIRE(f.pods.find("u-db")->containers.size() == 1);
    CHECK(f.pods.find("u-db")->containers[0].id == "c-new");
  }
  SUBCASE("a container that has ended") {
    f.runtime.put(container("c-db", "s-db", "app", v1::CONTAINER_EXITED), container_json(900));
    f.refresh();
    CHECK(f.pods.find("u-db")->containers.at(0).state == ContainerState::Exited);
    CHECK(f.runtime.calls("ContainerStatus") == 2);
  }
  SUBCASE("a label") {
    auto labelled = sandbox("s-db", "db", "u-db", 2);
    (*labelled.mutable_labels())["tier"] = "back";
    f.runtime.put(labelled, sandbox_json("/kubepods/burstable/podu-db"));
    f.refresh();
    CHECK(f.pods.find("u-db")->pod->labels.at("tier") == "back");
  }
  SUBCASE("an annotation of a container") {
    auto annotated = container("c-db", "s-db", "app");
    (*annotated.mutable_annotations())["io.kubernetes.pod.terminationGracePeriod"] = "7";
    f.runtime.put(annotated, container_json(900, 200 * MiB, 42));
    f.refresh();
    CHECK(f.pods.find("u-db")->pod->termination_grace_period_seconds == 7);
  }
  CHECK(f.pods.pods() != list);
  CHECK(f.pods.find("u-web") == web);
  CHECK(f.pods.find("u-db") != db);
}

TEST_CASE("a sandbox of another uid is another pod, whatever else is the same") {
  Fixture f;
  f.runtime.put(sandbox("s-1", "web", "u-1"), sandbox_json("/kubepods/podu-1"));
  f.refresh();
  f.runtime.put(sandbox("s-1", "web", "u-2"), sandbox_json("/kubepods/podu-2"));
  f.refresh();
  CHECK(f.pods.find("u-1") == nullptr);
  CHECK(f.pods.find("u-2") != nullptr);
}

TEST_CASE("what is gone is forgotten, and an earlier snapshot stands") {
  Fixture f;
  f.add_pod("web", 1);
  f.add_pod("db", 2);
  f.refresh();
  const auto earlier = f.pods.pods();
  const auto web = f.pods.find("u-web");

  f.runtime.remove_sandbox("s-web");
  f.runtime.remove_container("c-db");
  f.refresh();
  CHECK(f.keys() == Keys{"shop/db"});
  CHECK(f.pods.find("u-web") == nullptr);
  CHECK(f.pods.find("u-db")->containers.empty());
  CHECK(earlier->size() == 2);
  CHECK(web->pod->key() == "shop/web");

  f.add_pod("web", 3);  // the same ids anew: their statuses are new as well
  f.refresh();
  CHECK(f.runtime.calls("PodSandboxStatus") == 3);
}

TEST_CASE("of two ready sandboxes of one pod the latest is the pod") {
  Fixture f;
  auto second = sandbox("s-2", "web", "u-web", 5);
  second.mutable_metadata()->set_attempt(1);
  f.runtime.put(sandbox("s-1", "web", "u-web", 9), "{}");
  f.runtime.put(second, "{}");
  f.refresh();
  REQUIRE(f.pods.runtime_pods().size() == 1);
  CHECK(f.pods.find("u-web")->sandbox_id == "s-2");
}

TEST_CASE("a sandbox without a uid goes by its own id") {
  Fixture f;
  f.runtime.put(sandbox("s-1", "a", ""), "{}");
  f.runtime.put(sandbox("s-2", "b", ""), "{}");
  f.refresh();
  CHECK(f.keys() == Keys{"shop/a", "shop/b"});
  CHECK(f.pods.find("s-2")->pod->name == "b");
}

TEST_CASE("a runtime that cannot be asked leaves the snapshot as it was, with one line that says so") {
  Fixture f;
  f.add_pod("web", 1);
  f.refresh();

  SUBCASE("because it is gone") { f.runtime.stop(); }
  SUBCASE("because a list fails") { f.runtime.fail("ListContainers", 13); }
  SUBCASE("because it goes while statuses are read") {
    f.add_pod("db", 2);
    f.runtime.fail("ContainerStatus", 14);
  }
  const auto refreshed = f.try_refresh();
  REQUIRE_FALSE(refreshed);
  CHECK(refreshed.error().message.starts_with("cannot "));
  CHECK(refreshed.error().message.find(f.client.endpoint()) != std::string::npos);
  CHECK(refreshed.error().message.find('\n') == std::string::npos);
  CHECK(f.keys() == Keys{"shop/web"});
}

TEST_CASE("a single status that cannot be had costs a warning, told once, and is tried again") {
  Fixture f;
  f.add_pod("web", 1);
  f.runtime.fail("ContainerStatus", 13);
  f.refresh();
  CHECK(f.keys() == Keys{"shop/web"});
  CHECK(f.pods.find("u-web")->containers.size() == 1);
  const auto warnings = f.pods.take_warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].message.starts_with("pod shop/web: container app: its limits and requests are unknown: "));

  f.refresh();
  CHECK(f.pods.take_warnings().empty());
  CHECK_FALSE(f.pods.is_complete());

  f.runtime.recover("ContainerStatus");
  f.refresh();
  CHECK(f.pods.take_warnings().empty());
  CHECK(f.pods.is_complete());
  CHECK(f.pods.find("u-web")->pod->containers.at(0).resources.requests.at("memory").value() == 100 * MiB);

  SUBCASE("and a doubt that comes back is told again") {
    auto again = sandbox("s-web", "web", "u-web");
    (*again.mutable_annotations())["evictd.io/priority"] = "high";
    for (int i = 0; i < 2; ++i) {
      f.runtime.put(again, "{}");
      f.refresh();
      CHECK(f.pods.take_warnings().size() == 1);
      f.runtime.put(sandbox("s-web", "web", "u-web"), "{}");
      f.refresh();
    }
  }
}

TEST_CASE("of a container whose verbose status is too large the plain one counts, and it is asked for once") {
  Fixture f;
  f.add_pod("web", 1);
  f.runtime.put(container("c-web", "s-web", "app"), std::string(17 << 20, ' '));  // of its environment, say
  bool is_told = false;
  SUBCASE("which tells what the container was given") {
    v1::LinuxContainerResources given;
    given.set_oom_score_adj(900);
    f.runtime.set_resources("c-web", given);
    is_told = true;
  }
  SUBCASE("which tells nothing, by an old runtime") {}
  for (int i = 0; i < 3; ++i) f.refresh();
  const auto requests = f.pods.find("u-web")->pod->containers.at(0).resources.requests;
  CHECK(requests.contains("memory") == is_told);
  CHECK(f.pods.is_complete());
  CHECK(f.runtime.calls("ContainerStatus") == 2);
  const auto warnings = f.pods.take_warnings();
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].message.starts_with("pod shop/web: container app: its verbose status is too large to be had"));
}

TEST_CASE("a runtime that cannot give a status now leaves a claim as it is, one whose status is too large does not") {
  Fixture f;
  pods::CriPods doubting{f.client, 1000 * MiB, pods::TrustedNamespaces{{}}};
  f.add_pod("web", 1);
  auto claiming = sandbox("s-web", "web", "u-web");
  (*claiming.mutable_annotations())["evictd.io/pod-spec"] =
      R"({"containers": [{"name": "app", "resources": {"requests": {"memory": "50Mi"}}}]})";
  f.runtime.put(claiming, sandbox_json("/kubepods/burstable/podu-web"));
  const auto claim_counts = [&] {
    REQUIRE(run(f.reactor, doubting.refresh()));
    return !core::pod_request(*doubting.find("u-web")->pod, "memory").is_zero();
  };
  f.runtime.fail("ContainerStatus", 4);
  CHECK(claim_counts());
  f.runtime.fail("ContainerStatus", 8);  // both of them: nobody says that it stays so
  CHECK(claim_counts());
  CHECK_FALSE(doubting.is_complete());
  f.runtime.recover("ContainerStatus");
  SUBCASE("the honest one") { CHECK(claim_counts()); }
  SUBCASE("the other one") {
    f.runtime.put(container("c-web", "s-web", "app"), std::string(17 << 20, ' '));
    CHECK_FALSE(claim_counts());
  }
}

TEST_CASE("a container that vanishes between list and status is left out without a word") {
  Fixture f;
  f.add_pod("web", 1);
  f.runtime.fail("ContainerStatus", 5);
  f.refresh();
  CHECK(f.keys() == Keys{"shop/web"});
  CHECK(f.pods.find("u-web")->containers.empty());
  CHECK(f.pods.take_warnings().empty());
}

TEST_CASE("a verbose status of many MiB costs the reactor's turn less than reading it takes") {
  std::string large = container_json(900, 200 * MiB, 42);
  large.pop_back();
  large += R"(,"env":[)";
  while (large.size() < 14 * MiB) large += R"({"name":"A","value":"as a user has Kubernetes expand it"},)";
  large += "0]}";
  const auto processor_time = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  };
  const auto before = processor_time();
  REQUIRE(parse_container_info(large));
  const auto reading = processor_time() - before;

  Fixture f;
  f.add_pod("web", 1);
  for (const auto* id : {"c-1", "c-2", "c-3"}) f.runtime.put(container(id, "s-web", id), large);
  f.runtime.put(sandbox("s-web", "web", "u-web", 1), sandbox_json("/kubepods/burstable/podu-web"));
  const async::Turns turns{std::chrono::seconds{10}};
  f.refresh();
  f.refresh();  // the turn in which the first was done ends as this one waits
  const auto web = f.pods.find("u-web");
  REQUIRE(web);
  REQUIRE(web->containers.size() == 4);
  for (const auto& container : web->containers) CHECK(container.pid == 42);
  CHECK(f.pods.take_warnings().empty());
  CHECK_MESSAGE(turns.busiest() < reading, turns.busiest().count(), " ns of ", reading.count());
}

TEST_CASE("refreshes may overlap") {
  Fixture f;
  f.add_pod("web", 1);
  int done = 0;
  for (int i = 0; i < 5; ++i)
    asio::co_spawn(f.reactor, f.pods.refresh(),
                   [&](std::exception_ptr, const Result<void>& refreshed) { done += refreshed ? 1 : 0; });
  REQUIRE(test::run_until(f.reactor, [&] { return done == 5; }));
  CHECK(f.keys() == Keys{"shop/web"});
  CHECK(f.pods.find("u-web")->containers.size() == 1);
}

TEST_CASE("a node with two hundred pods is read in one refresh") {
  Fixture f;
  for (int i = 0; i < 200; ++i) f.add_pod("p" + std::to_string(i), i);
  f.refresh();
  CHECK(f.pods.pods()->size() == 200);
  CHECK(f.runtime.calls("ContainerStatus") == 200);
}

}  // namespace evictd::pods::cri_pods_test
