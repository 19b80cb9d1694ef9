#include "evict/evictor.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "async/side_thread.hpp"
#include "cri/fake_runtime.hpp"
#include "cri/run.hpp"
#include "evict/pod_cgroup_removal.hpp"
#include "evict/pod_holds.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;
using evictd::fixture::dies;
using evictd::fixture::lives;
using evictd::fixture::no_real_cgroups;
using evictd::fixture::own_cgroup;
using evictd::fixture::RealCgroup;
using evictd::fixture::Sleeper;

namespace evictd::evict::evictor_test {
namespace {

namespace v1 = ::runtime::v1;
using Lines = std::vector<std::string>;

std::string describe(const Progress& progress) {
  if (const auto* failed = std::get_if<CallFailed>(&progress)) return "failed " + failed->call;
  if (const auto* delayed = std::get_if<CallDelayed>(&progress)) return "delayed " + delayed->call;
  if (const auto* ended = std::get_if<CleanupEnded>(&progress))
    return ended->timed_out ? "timed out: " + ended->remaining : "cleaned";
  return std::string(name(progress));
}

struct FakeLookout final : node::KubeletLookout {
  asio::awaitable<std::optional<bool>> kubelet_runs(core::Instant) override { co_return kubelet; }

  std::optional<bool> kubelet = false;
};

struct FakeProbe final : node::SignalProbe {
  [[nodiscard]] std::span<const core::Signal> signals() const override { return {}; }
  [[nodiscard]] std::optional<std::int64_t> available(core::Signal) const override { return bytes; }

  std::int64_t bytes = 90;
};

/// A process in the cgroup that holds so many bytes once this is made.
class Holder {
 public:
  Holder(const RealCgroup& cgroup, std::size_t bytes) {
    std::array<int, 2> go{};
    std::array<int, 2> done{};
    REQUIRE(::pipe(go.data()) == 0);
    REQUIRE(::pipe(done.data()) == 0);
    pid_ = ::fork();
    char byte = 0;
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::read(go[0], &byte, 1) != 1) ::_exit(1);
      auto* memory = static_cast<char*>(
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
      if (memory == MAP_FAILED || ::write(done[1], &byte, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    cgroup.put(pid_);
    REQUIRE(::write(go[1], &byte, 1) == 1);
    REQUIRE(::read(done[0], &byte, 1) == 1);
    for (const int descriptor : {go[0], go[1], done[0], done[1]}) ::close(descriptor);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

/// A pod of one container in real cgroups, which a fake runtime lists, and an evictor.
struct Scene {
  /// `kills_below`: the pods' cgroup.
  explicit Scene(EvictorOptions options = {.stop_timeout = 2s, .cleanup_timeout = 20s},
                 std::string kills_below = own_cgroup())
      : options{options}, kills_below{std::move(kills_below)} {
    container_cgroup.put(hog.pid());
    sandbox_cgroup.put(pause.pid());
    list();
    cgroups.sync(std::array{node::PodCgroup{"uid", pod_cgroup.path()}});
    runtime.start();
    REQUIRE(test::run(reactor, client.version()));  // connects: no time of a test is for that
  }

  void list_sandbox(v1::PodSandboxState state) {
    v1::PodSandbox sandbox;
    sandbox.set_id("s1");
    sandbox.set_state(state);
    sandbox.mutable_metadata()->set_uid("uid");
    runtime.put(sandbox, "");
  }
  void list() {
    list_sandbox(v1::SANDBOX_READY);
    v1::Container container;
    container.set_id("c1");
    container.set_pod_sandbox_id("s1");
    container.mutable_metadata()->set_name("main");
    container.set_state(v1::CONTAINER_RUNNING);
    runtime.put(container, "");
  }
  /// As containerd does it: the sandbox's process goes when it is stopped.
  void stop_ends_the_sandbox() {
    runtime.meanwhile("StopPodSandbox", [this] { ::kill(pause.pid(), SIGKILL); });
  }
  [[nodiscard]] pods::RuntimePodPtr pod(bool listed = true) const {
    core::Pod spec{.name_space = "default", .name = "hog", .uid = "uid"};
    spec.containers.push_back({.name = "main", .pre_stop = hook});
    pods::RuntimePod pod{.pod = std::make_shared<const core::Pod>(std::move(spec)), .cgroup = pod_cgroup.path()};
    if (listed) {
      pod.sandbox_id = "s1";
      if (has_containers)
        pod.containers.push_back({.id = "c1", .name = "main", .state = pods::ContainerState::Running});
    }
    return std::make_shared<const pods::RuntimePod>(std::move(pod));
  }
  void begin(Afterwards afterwards = Afterwards::keep, bool listed = true, core::Duration grace_period = 0s,
             const std::optional<Reached>& reached = {}, const std::optional<Shortage>& shortage = {}) {
    evictor.begin(
        pod(listed), grace_period, afterwards,
        [this](const Progress& progress) {
          told.push_back(describe(progress));
          on_told(told.back());
        },
        reached, shortage);
  }
  /// For want of memory, so that it may be held.
  void begin_short(const std::optional<Reached>& reached = {}) {
    begin(Afterwards::keep, true, 0s, reached,
          Shortage{.signal = core::Signal::MemoryAvailable, .required = 100, .available = 90});
  }
  /// What holds the pod: the file that this version has for it.
  [[nodiscard]] std::string limit() const {
    const auto* file = hierarchy.version() == node::CgroupVersion::v2 ? "memory.high" : "memory.limit_in_bytes";
    return node::read_held_file(hierarchy.memory(pod_cgroup.path()).value(), file).value();
  }
  [[nodiscard]] bool has_volume() const {
    return std::filesystem::exists(kubelet_root.path("pods/uid/volumes/kubernetes.io~empty-dir/cache"));
  }
  [[nodiscard]] bool has_pod_cgroup() const { return hierarchy.memory(pod_cgroup.path()).has_value(); }
  /// With all that is left in it, as a kubelet does it.
  void remove_pod_cgroup() {
    REQUIRE(test::run_until(reactor, [&] {
      return evict::remove_pod_cgroup(hierarchy.root().path(), hierarchy.version(), pod_cgroup.path()).value_or(false);
    }));
  }
  [[nodiscard]] bool ended() const {
    return std::ranges::any_of(told, [](const auto& line) { return line == "cleaned" || line.starts_with("timed"); });
  }
  /// Runs until the cleanup has ended. The dead of the test are its own children: they leave their cgroup at once, as
  /// zombies.
  void finish() {
    REQUIRE(test::run_until(reactor, [&] { return ended(); }));
  }
  [[nodiscard]] bool was_told(const std::string& line) const { return std::ranges::find(told, line) != told.end(); }

  EvictorOptions options;
  std::string kills_below;
  bool has_containers = true;  // one that is listed, as far as is known
  std::optional<core::PreStop> hook{};
  Lines told{};
  std::function<void(const std::string&)> on_told = [](const std::string&) {};
  const RealCgroup pods_cgroup{own_cgroup()};
  const RealCgroup pod_cgroup{own_cgroup("/poduid")};
  const RealCgroup sandbox_cgroup{own_cgroup("/poduid/s1")};
  const RealCgroup container_cgroup{own_cgroup("/poduid/c1")};
  const Sleeper hog;
  const Sleeper pause;
  test::FakeRuntime runtime;
  const node::CgroupHierarchy hierarchy = fixture::real_hierarchy();
  node::PodCgroups cgroups{hierarchy};
  Reaper reaper;
  const fixture::Tree kubelet_root{fixture::dir(
      "pods",
      {fixture::dir("uid",
                    {fixture::dir("volumes", {fixture::dir("kubernetes.io~empty-dir",
                                                           {fixture::dir("cache", {fixture::file("f", "x")})})})})})};
  FakeLookout lookout;
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), 2s};
  FakeProbe probe;
  std::unique_ptr<PodHolds> holds = make_holds();
  Evictor evictor{reactor.get_executor(),
                  {.runtime = client,
                   .hierarchy = hierarchy,
                   .pods_cgroup = kills_below,
                   .cgroups = cgroups,
                   .reaper = reaper,
                   .kubelet_root = kubelet_root.path(),
                   .is_protected = [](pid_t) { return false; },
                   .kubelet = lookout,
                   .holder = holds.get(),
                   .memory = &probe},
                  options};

 private:
  [[nodiscard]] std::unique_ptr<PodHolds> make_holds() {
    if (options.held_end.time.brake == 0s) return nullptr;
    return std::make_unique<PodHolds>(
        reactor.get_executor(),
        PodHolds::Parts{.hierarchy = std::make_shared<const node::CgroupHierarchy>(fixture::real_hierarchy()),
                        .pods_cgroup = own_cgroup(),
                        .is_protected = [](pid_t) { return false; },
                        .notes = node::HoldNotes{kubelet_root.path("held")},
                        .worker = std::make_unique<async::SideThread>(reactor.get_executor(), "holds")});
  }
};

}  // namespace

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("a direct kill takes the containers at once, and leaves the sandbox to the runtime") {
  SKIP_IF(no_real_cgroups());
  for (const bool listed : {true, false}) {
    CAPTURE(listed);
    Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
    scene.stop_ends_the_sandbox();
    scene.begin(Afterwards::keep, listed);
    CHECK(scene.told == Lines{"killed"});
    CHECK(dies(scene.hog.pid()));
    CHECK(lives(scene.pause.pid()));
    scene.finish();
    CHECK_FALSE(lives(scene.pause.pid()));
    CHECK(scene.told.back() == "cleaned");
    CHECK_FALSE(scene.was_told("failed StopPodSandbox"));
    CHECK(scene.runtime.calls("StopPodSandbox") == 1);
  }
}

TEST_CASE("the sandbox's process is killed where the runtime has not ended it within the stop timeout") {
  SKIP_IF(no_real_cgroups());
  SUBCASE("it hangs") {
    Scene scene;
    scene.runtime.hang("StopPodSandbox");
    scene.begin();
    CHECK(dies(scene.hog.pid()));
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("delayed StopPodSandbox"); }));
    REQUIRE(test::run_until(scene.reactor, [&] { return !lives(scene.pause.pid()); }));
    CHECK_FALSE(scene.was_told("failed StopPodSandbox"));
    CHECK(scene.runtime.calls("StopPodSandbox") == 1);
  }
  SUBCASE("it refuses, again and again") {
    Scene scene;
    scene.runtime.fail("StopPodSandbox", 2);
    scene.begin();
    CHECK(dies(scene.hog.pid()));
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopPodSandbox") >= 2; }));
    REQUIRE(test::run_until(scene.reactor, [&] { return !lives(scene.pause.pid()); }));
    CHECK(scene.was_told("failed StopPodSandbox"));
  }
  SUBCASE("it refuses, and then hangs") {
    Scene scene;
    scene.runtime.fail("StopPodSandbox", 2);
    scene.begin();
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopPodSandbox") >= 1; }));
    scene.runtime.hang("StopPodSandbox");
    REQUIRE(test::run_until(scene.reactor, [&] { return !lives(scene.pause.pid()); }));
    CHECK(scene.was_told("failed StopPodSandbox"));
  }
  SUBCASE("it does not say which sandboxes it has") {
    Scene scene;
    scene.runtime.fail("ListPodSandbox", 2);
    scene.begin(Afterwards::keep, false);
    CHECK(dies(scene.hog.pid()));
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("failed ListPodSandbox"); }));
    REQUIRE(test::run_until(scene.reactor, [&] { return !lives(scene.pause.pid()); }));
  }
}

TEST_CASE("a sandbox whose process had to be killed is stopped afterwards, for what else the runtime has of it") {
  SKIP_IF(no_real_cgroups());
  Scene scene;
  scene.runtime.hang("StopPodSandbox");
  scene.begin();
  REQUIRE(test::run_until(scene.reactor, [&] { return !lives(scene.pause.pid()); }));
  scene.runtime.recover("StopPodSandbox");
  scene.list_sandbox(v1::SANDBOX_NOTREADY);  // containerd sees its process end
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(test::run_until(scene.reactor, [&] {
    const auto done = scene.runtime.done();
    return !done.empty() && done.back() == "StopPodSandbox s1";
  }));
  CHECK(scene.told.back() == "cleaned");
}

TEST_CASE("the runtime has the stop timeout to come back in before the sandbox is killed") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.stop_ends_the_sandbox();
  scene.runtime.fail("StopPodSandbox", 14);
  scene.begin();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopPodSandbox") >= 3; }));
  scene.runtime.recover("StopPodSandbox");
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK_FALSE(scene.was_told("failed StopPodSandbox"));
}

TEST_CASE("what is in the pod's cgroup and in no container's goes with the containers") {
  SKIP_IF(no_real_cgroups());
  Scene scene;
  scene.stop_ends_the_sandbox();
  const RealCgroup unknown{own_cgroup("/poduid/c2")};
  const Sleeper started_just_now;
  unknown.put(started_just_now.pid());
  scene.begin();
  CHECK(dies(started_just_now.pid()));
  CHECK(lives(scene.pause.pid()));
  scene.finish();
}

TEST_CASE("memory counts as released while the sandbox's process lives") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.runtime.hang("StopPodSandbox");
  const Holder holder{scene.container_cgroup, 64 << 20};
  scene.begin();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("released"); }));
  CHECK(lives(scene.pause.pid()));
}

TEST_CASE("the memory of a killed pod is back before the runtime is asked to keep its books") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.head_start = 600s, .stop_timeout = 20s, .cleanup_timeout = 20s}};
  const Holder holder{scene.container_cgroup, 64 << 20};
  scene.begin();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("released"); }));
  CHECK(scene.runtime.calls("StopContainer") == 0);
}

TEST_CASE(
    "the runtime is told to give a container two seconds at least where its pod has any time, and none otherwise") {
  SKIP_IF(no_real_cgroups());
  for (const auto& [given, told] : {std::pair{0s, 0s}, {1s, 2s}, {3s, 3s}}) {
    CAPTURE(given.count());
    Scene scene{{.direct_kill = false, .stop_timeout = 2s, .cleanup_timeout = 20s}};
    scene.stop_ends_the_sandbox();
    scene.runtime.meanwhile("StopContainer", [&] { ::kill(scene.hog.pid(), SIGKILL); });
    scene.begin(Afterwards::keep, true, given);
    scene.finish();
    CHECK(scene.runtime.last_grace() == told);
    CHECK(scene.told.back() == "cleaned");
  }
}

TEST_CASE("a quicker eviction breaks off the hook of one that gives time, and kills at once") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.hook = core::ExecHook{{"bye"}};
  scene.runtime.hang("ExecSync");
  scene.stop_ends_the_sandbox();
  scene.begin(Afterwards::keep, true, 600s);
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("ExecSync") == 1; }));
  CHECK(lives(scene.hog.pid()));
  CHECK(scene.runtime.calls("StopContainer") == 0);
  scene.begin();
  CHECK(dies(scene.hog.pid()));
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(scene.runtime.calls("ExecSync") == 1);
  REQUIRE(scene.runtime.stops().size() == 1);
  CHECK(scene.runtime.last_grace() == 0s);
}

TEST_CASE("an eviction that another one took over removes nothing that this one keeps") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 20s, .remove_volumes = RemoveVolumes::where_no_kubelet_runs}};
  scene.runtime.hang("StopPodSandbox");
  std::string reached = "StopPodSandbox";
  SUBCASE("while its hook ran") {
    scene.hook = core::ExecHook{{"bye"}};
    scene.runtime.hang("ExecSync");
    reached = "ExecSync";
  }
  SUBCASE("while its sandbox was stopped") {
    scene.runtime.meanwhile("StopContainer", [&] { ::kill(scene.hog.pid(), SIGKILL); });
  }
  scene.begin(Afterwards::remove_all, true, 600s);
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls(reached) == 1; }));
  scene.begin(Afterwards::keep);
  CHECK(dies(scene.hog.pid()));
  // All that is left of it, long before either is through.
  ::kill(scene.pause.pid(), SIGKILL);
  scene.list_sandbox(v1::SANDBOX_NOTREADY);
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(scene.has_volume());
  CHECK(scene.runtime.calls("RemovePodSandbox") == 0);
}

TEST_CASE("one that takes over from a slower one, or from another evictd, runs no hook again") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.hook = core::ExecHook{{"bye"}};
  scene.stop_ends_the_sandbox();
  scene.runtime.meanwhile("StopContainer", [&] { ::kill(scene.hog.pid(), SIGKILL); });
  int hooks = 0;
  SUBCASE("a slower one") {
    hooks = 1;
    scene.runtime.hang("ExecSync");
    scene.begin(Afterwards::keep, true, 600s);
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("ExecSync") == 1; }));
    scene.begin(Afterwards::keep, true, 300s);
  }
  SUBCASE("another evictd") { scene.begin(Afterwards::keep, true, 300s, Reached{.resumed = true}); }
  scene.finish();
  CHECK(scene.runtime.calls("ExecSync") == hooks);
  REQUIRE(scene.runtime.stops().size() == 1);
  CHECK(scene.runtime.last_grace() <= 300s);
  CHECK(scene.runtime.last_grace() > 200s);
}

TEST_CASE("a container that was started again while its pod ended is killed before the pod is told to be dead") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  const RealCgroup restarted{own_cgroup("/poduid/c2")};
  const Sleeper again;
  scene.runtime.meanwhile("StopContainer", [&] {
    ::kill(scene.hog.pid(), SIGKILL);
    restarted.put(again.pid());
  });
  scene.runtime.hang("StopPodSandbox");
  scene.begin(Afterwards::keep, true, 300s);
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("killed"); }));
  CHECK(dies(again.pid()));
  CHECK(lives(scene.pause.pid()));
}

TEST_CASE("the containers of a pod that was not listed yet are found, and get the time that the pod is given") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.stop_ends_the_sandbox();
  scene.runtime.meanwhile("StopContainer", [&] { ::kill(scene.hog.pid(), SIGKILL); });
  int stopped_before = 0;
  Lines done_before;
  scene.on_told = [&](const std::string& line) {
    if (line != "killed") return;
    stopped_before = scene.runtime.calls("StopContainer");
    done_before = scene.runtime.done();
  };
  scene.begin(Afterwards::keep, false, 300s);
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(stopped_before == 1);
  CHECK(done_before.empty());
  CHECK(scene.runtime.done() == Lines{"StopPodSandbox s1"});
  REQUIRE(scene.runtime.stops().size() == 1);
  CHECK(scene.runtime.stops().front().container == "c1");
  CHECK(scene.runtime.last_grace() <= 300s);
  CHECK(scene.runtime.last_grace() > 200s);
}

TEST_CASE("a pod without containers in the runtime ends with its sandbox, whatever time it is given") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.runtime.remove_container("c1");
  scene.runtime.meanwhile("StopPodSandbox", [&] {
    ::kill(scene.hog.pid(), SIGKILL);
    ::kill(scene.pause.pid(), SIGKILL);
  });
  scene.begin(Afterwards::keep, false, 300s);
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(scene.runtime.done() == Lines{"StopPodSandbox s1"});
}

TEST_CASE("a pod of which no container is known is not said to be dead while it lives") {
  SKIP_IF(no_real_cgroups());
  int asked_before = 0;
  SUBCASE("the runtime is to kill it, and hangs") {
    Scene scene{{.direct_kill = false, .stop_timeout = 2s, .cleanup_timeout = 20s}};
    scene.runtime.hang("StopPodSandbox");
    scene.on_told = [&](const std::string& line) {
      if (line == "killed") asked_before = scene.runtime.calls("StopPodSandbox");
    };
    scene.begin(Afterwards::keep, false);
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("killed"); }));
    CHECK(asked_before == 1);
    CHECK(dies(scene.hog.pid()));
  }
  SUBCASE("the runtime kills it") {
    Scene scene{{.direct_kill = false, .stop_timeout = 20s, .cleanup_timeout = 20s}};
    scene.runtime.meanwhile("StopPodSandbox", [&] {
      ::kill(scene.hog.pid(), SIGKILL);
      ::kill(scene.pause.pid(), SIGKILL);
      CHECK(dies(scene.hog.pid()));
    });
    scene.on_told = [&](const std::string& line) {
      if (line == "killed") asked_before = scene.runtime.calls("StopPodSandbox");
    };
    scene.begin(Afterwards::keep, false);
    scene.finish();
    CHECK(asked_before == 1);
    CHECK(scene.told == Lines{"killed", "released", "gone", "cleaned"});
  }
  SUBCASE("it cannot be signalled, and the runtime hangs") {
    Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 20s}, own_cgroup("/others")};
    scene.runtime.hang("StopPodSandbox");
    scene.begin(Afterwards::keep, false);
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("delayed StopPodSandbox"); }));
    CHECK(scene.told == Lines{"failed kill", "delayed StopPodSandbox"});
    CHECK(lives(scene.hog.pid()));
  }
}

TEST_CASE("a runtime that does not tell a pod's containers takes nothing from the time that the pod is given") {
  SKIP_IF(no_real_cgroups());
  for (const bool knows_sandbox : {false, true}) {
    CAPTURE(knows_sandbox);
    Scene scene{{.stop_timeout = 500ms, .cleanup_timeout = 20s}};
    scene.has_containers = false;
    scene.stop_ends_the_sandbox();
    scene.runtime.meanwhile("StopContainer", [&] { ::kill(scene.hog.pid(), SIGKILL); });
    const std::string call = knows_sandbox ? "ListContainers" : "ListPodSandbox";
    scene.runtime.fail(call, 14);
    scene.begin(Afterwards::keep, knows_sandbox, 300s);
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls(call) >= 15; }));
    CHECK(lives(scene.hog.pid()));
    CHECK(scene.told.empty());
    scene.runtime.recover(call);
    scene.finish();
    CHECK(scene.told.back() == "cleaned");
    CHECK(scene.runtime.last_grace() <= 300s);
    CHECK(scene.runtime.last_grace() > 200s);
  }
}

TEST_CASE("a quicker eviction kills a pod at once whose containers are looked for") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 500ms, .cleanup_timeout = 20s}};
  scene.stop_ends_the_sandbox();
  scene.runtime.fail("ListPodSandbox", 14);
  scene.begin(Afterwards::keep, false, 300s);
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("ListPodSandbox") >= 15; }));
  CHECK(lives(scene.hog.pid()));
  scene.begin(Afterwards::keep, false);
  CHECK(dies(scene.hog.pid()));
  scene.runtime.recover("ListPodSandbox");
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(scene.runtime.stops().empty());
}

TEST_CASE("once its time is over a pod goes whose containers the runtime has not told, and its sandbox not before it") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 20s, .cleanup_timeout = 20s}};
  scene.runtime.fail("ListPodSandbox", 14);
  scene.begin(Afterwards::keep, false, 1s);
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("killed"); }));
  CHECK(dies(scene.hog.pid()));
  CHECK(lives(scene.pause.pid()));
}

TEST_CASE("a pod that is held lives on until it has ended, or its time is over, and is let go") {
  SKIP_IF(no_real_cgroups());
  Scene scene{
      {.stop_timeout = 20s, .cleanup_timeout = 20s, .held_end = {.time = {.brake = 600s}, .longest_attempt = 20s}}};
  const auto before = scene.limit();
  scene.stop_ends_the_sandbox();
  scene.runtime.hang("StopContainer");
  scene.begin_short();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopContainer") == 1; }));
  CHECK(scene.told == Lines{"braked"});
  CHECK(lives(scene.hog.pid()));
  CHECK(scene.limit() != before);
  SUBCASE("it ends") { ::kill(scene.hog.pid(), SIGTERM); }
  SUBCASE("nothing is left for others") { scene.probe.bytes = 1; }
  SUBCASE("evictd ends") { scene.evictor.hurry(); }
  SUBCASE("another eviction takes over") { scene.begin(); }
  REQUIRE(test::run_until(scene.reactor, [&] { return !lives(scene.hog.pid()); }));
  scene.runtime.recover("StopContainer");
  scene.finish();
  CHECK(scene.was_told("killed"));
  CHECK(test::run_until(scene.reactor, [&] { return !std::filesystem::exists(scene.kubelet_root.path("held")); }));
}

TEST_CASE("a pod that the runtime is to kill is held until then") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.direct_kill = false,
               .stop_timeout = 2s,
               .cleanup_timeout = 20s,
               .held_end = {.time = {.brake = 600s}, .longest_attempt = 20s}}};
  const auto before = scene.limit();
  scene.stop_ends_the_sandbox();
  scene.runtime.hang("StopContainer");
  scene.begin_short();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopContainer") == 1; }));
  scene.probe.bytes = 1;
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopContainer") == 2; }));
  CHECK(lives(scene.hog.pid()));
  CHECK(scene.limit() != before);
  CHECK(scene.told == Lines{"braked"});
  scene.finish();
  CHECK_FALSE(lives(scene.hog.pid()));
  CHECK(test::run_until(scene.reactor, [&] { return !std::filesystem::exists(scene.kubelet_root.path("held")); }));
}

TEST_CASE("a pod that is held of which no container is known is held until it is killed") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.direct_kill = false,
               .stop_timeout = 2s,
               .cleanup_timeout = 20s,
               .held_end = {.time = {.brake = 600s}, .longest_attempt = 20s}}};
  scene.has_containers = false;
  scene.runtime.hang("StopPodSandbox");
  const auto before = scene.limit();
  scene.begin_short();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("braked"); }));
  scene.probe.bytes = 1;
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("StopPodSandbox") == 1; }));
  CHECK(lives(scene.hog.pid()));
  CHECK(scene.limit() != before);
  CHECK(scene.told == Lines{"braked"});
  REQUIRE(test::run_until(scene.reactor, [&] { return std::ranges::count(scene.told, "braked") == 2; }));
  CHECK(scene.was_told("killed"));
  CHECK(dies(scene.hog.pid()));
}

TEST_CASE("one that another evictd began is not held again, and that it was held is over") {
  SKIP_IF(no_real_cgroups());
  Scene scene{
      {.stop_timeout = 20s, .cleanup_timeout = 20s, .held_end = {.time = {.brake = 600s}, .longest_attempt = 20s}}};
  scene.stop_ends_the_sandbox();
  scene.begin_short(Reached{.resumed = true, .given_time = GivenTime::now});
  CHECK(scene.told == Lines{"killed", "braked"});
  CHECK(dies(scene.hog.pid()));
  scene.finish();
}

TEST_CASE("a removal that is refused is tried again, and the cleanup is not done before it is") {
  SKIP_IF(no_real_cgroups());
  Scene scene;
  scene.stop_ends_the_sandbox();
  scene.runtime.fail("RemovePodSandbox", 2);
  scene.begin(Afterwards::remove_all);
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.runtime.calls("RemovePodSandbox") >= 3; }));
  CHECK_FALSE(scene.ended());
  scene.runtime.recover("RemovePodSandbox");
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(scene.runtime.done().back() == "RemovePodSandbox s1");
}

TEST_CASE("a sandbox that cannot be removed ends the cleanup by its timeout, which tells why") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 3s}};
  scene.stop_ends_the_sandbox();
  scene.runtime.fail("RemovePodSandbox", 2);
  scene.begin(Afterwards::remove_all);
  scene.finish();
  CHECK(scene.told.back().starts_with("timed out: the sandbox not removed: "));
  CHECK(scene.told.back().find("ordered by the test") != std::string::npos);
}

TEST_CASE("where no kubelet runs the pod's own cgroup is removed, with what was left in it, and no other") {
  SKIP_IF(no_real_cgroups());
  Scene scene;
  scene.stop_ends_the_sandbox();
  const RealCgroup left{own_cgroup("/poduid/left")};
  const RealCgroup below{own_cgroup("/poduid/left/below")};
  const RealCgroup other{own_cgroup("/podother")};
  scene.begin();
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(scene.was_told("gone"));
  CHECK_FALSE(scene.has_pod_cgroup());
  CHECK(scene.hierarchy.memory(other.path()).has_value());
}

TEST_CASE("where no kubelet runs a cgroup is removed also where the runtime or a disk is too late for the cleanup") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 500ms, .cleanup_timeout = 2s, .remove_volumes = RemoveVolumes::where_no_kubelet_runs}};
  scene.stop_ends_the_sandbox();
  SUBCASE("the runtime") {
    scene.runtime.hang("StopPodSandbox");
    scene.runtime.fail("ListContainers", 14);
    scene.begin(Afterwards::remove_volumes);
    scene.finish();
    CHECK(scene.has_pod_cgroup());
    scene.runtime.recover("StopPodSandbox");
  }
  SUBCASE("the emptyDirs, where a disk is short") {
    scene.lookout.kubelet = std::nullopt;
    scene.on_told = [&](const std::string& line) {
      if (line.starts_with("timed out")) scene.lookout.kubelet = false;
    };
    scene.begin(Afterwards::remove_all);
    scene.finish();
    CHECK(scene.told.back() == "timed out: the pod's emptyDirs");
  }
  CHECK(scene.told.back().starts_with("timed out: "));
  CHECK_FALSE(scene.was_told("gone"));
  CHECK(test::run_until(scene.reactor, [&] { return !scene.has_pod_cgroup(); }));
}

TEST_CASE("a kubelet's cgroup is left to it, and the cleanup waits until that has removed it") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 60s}};
  scene.lookout.kubelet = true;
  scene.stop_ends_the_sandbox();
  scene.begin();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("gone"); }));
  CHECK_FALSE(scene.ended());
  CHECK(scene.has_pod_cgroup());
  scene.remove_pod_cgroup();
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
}

TEST_CASE("a pod that a kubelet starts again is not waited for, and lives") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 60s}};
  scene.lookout.kubelet = true;
  scene.stop_ends_the_sandbox();
  scene.begin();
  REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("gone"); }));
  const Sleeper again;
  scene.container_cgroup.put(again.pid());
  scene.finish();
  CHECK(scene.told.back() == "cleaned");
  CHECK(lives(again.pid()));
}

TEST_CASE("a cgroup that stays ends the cleanup by its timeout, which says so") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 3s}};
  scene.lookout.kubelet = true;
  scene.stop_ends_the_sandbox();
  scene.begin();
  scene.finish();
  CHECK(scene.was_told("gone"));
  CHECK(scene.told.back() == "timed out: the pod's cgroup");
}

TEST_CASE("an evicted pod's volumes go once it is gone, before that is said where a disk is short") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 20s, .remove_volumes = RemoveVolumes::where_no_kubelet_runs}};
  scene.stop_ends_the_sandbox();
  std::optional<bool> had_volume;
  scene.on_told = [&](const std::string& line) {
    if (line == "gone") had_volume = scene.has_volume();
  };
  SUBCASE("memory") {
    scene.begin(Afterwards::remove_volumes);
    scene.finish();
    CHECK_FALSE(scene.has_volume());
  }
  SUBCASE("a disk") {
    scene.begin(Afterwards::remove_all);
    scene.finish();
    REQUIRE(had_volume.has_value());
    CHECK_FALSE(*had_volume);
  }
  SUBCASE("the machine goes down") {
    scene.begin(Afterwards::keep);
    scene.finish();
    CHECK(scene.has_volume());
  }
  SUBCASE("a kubelet runs") {
    scene.lookout.kubelet = true;
    scene.begin(Afterwards::remove_volumes);
    REQUIRE(test::run_until(scene.reactor, [&] { return scene.was_told("gone"); }));
    scene.remove_pod_cgroup();
    scene.finish();
    CHECK(scene.has_volume());
  }
  SUBCASE("an evictd before this one saw it gone") {
    scene.begin(Afterwards::remove_volumes, true, 0s, Reached{.killed = true, .released = true, .gone = true});
    scene.finish();
    CHECK(scene.has_volume());  // its hog lives: somebody has started the pod again
  }
  CHECK(scene.told.back() == "cleaned");
}

TEST_CASE("a runtime that is not through with a pod keeps none of its volumes: it may lack their space") {
  SKIP_IF(no_real_cgroups());
  Scene scene{{.stop_timeout = 2s, .cleanup_timeout = 2s, .remove_volumes = RemoveVolumes::always}};
  scene.stop_ends_the_sandbox();
  scene.runtime.fail("RemovePodSandbox", 2);
  scene.begin(Afterwards::remove_all);
  scene.finish();
  CHECK(scene.told.back().starts_with("timed out: the sandbox not removed: "));
  CHECK_FALSE(scene.was_told("gone"));
  CHECK_FALSE(scene.has_volume());
}

TEST_CASE("of a pod that was gone already nothing is killed") {
  SKIP_IF(no_real_cgroups());
  Scene scene;
  scene.begin(Afterwards::keep, true, 0s, Reached{.killed = true, .released = true, .gone = true});
  scene.finish();
  CHECK(scene.told == Lines{"cleaned"});
  CHECK(lives(scene.hog.pid()));
  CHECK(scene.runtime.calls("StopPodSandbox") == 0);
}

TEST_SUITE_END();

}  // namespace evictd::evict::evictor_test
