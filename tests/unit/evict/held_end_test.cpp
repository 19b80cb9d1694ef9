#include "evict/held_end.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
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

namespace evictd::evict::held_end_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::operator""_MiB;
using Lines = std::vector<std::string>;

struct FakeHolder final : PodHolder {
  asio::awaitable<Result<node::Brake>> hold(HoldRequest request, core::Instant) override {
    lines.push_back((request.by == HoldBy::brake ? "brake " : "freeze ") + request.uid);
    if (refuses) co_return fail("no such file");
    asio::steady_timer timer{co_await asio::this_coro::executor};
    while (is_slow) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    headroom = request.headroom;
    const node::Brake brake{.limit = 300_MiB + request.headroom, .usage = 300_MiB};
    co_return brake;
  }
  void widen(const std::string& uid, std::int64_t limit) override {
    lines.push_back("widen " + uid + " to " + std::to_string(limit >> 20) + " MiB");
  }
  void let_go(const std::string& uid) override { lines.push_back("let go " + uid); }

  bool refuses = false;
  bool is_slow = false;
  std::int64_t headroom = 0;
  Lines lines{};
};

struct FakeProbe final : node::SignalProbe {
  [[nodiscard]] std::span<const core::Signal> signals() const override { return {}; }
  [[nodiscard]] std::optional<std::int64_t> available(core::Signal) const override { return bytes; }

  std::optional<std::int64_t> bytes = 90_MiB;
};

struct FakeHooks final : KillHooks {
  /// Whichever way a question ends: one that is cancelled may never have begun to wait.
  struct Open {
    explicit Open(int& count) : count{count} { ++count; }
    ~Open() { --count; }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

    int& count;
  };

  [[nodiscard]] bool has_any() const override { return any; }
  asio::awaitable<void> ask(KillIntent intent) override {
    asked.push_back(intent.message);
    told = intent;
    intent.answers->push_back({.hook = "page", .outcome = "done", .took = 1ms});
    intent.answers->push_back({.hook = "dump", .outcome = std::string(outcome_late)});
    const Open counted{open};
    asio::steady_timer timer{co_await asio::this_coro::executor};
    while (!answers) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);  // throws once it is cancelled
    }
    intent.answers->back() = {.hook = "dump", .outcome = "done", .took = 2ms};
  }

  bool any = false;
  bool answers = true;
  int open = 0;
  Lines asked{};
  KillIntent told{};  // the last one
};

std::string describe(const Progress& progress) {
  if (const auto* braked = std::get_if<Braked>(&progress)) {
    constexpr std::array phases{"held", "ended", "killed"};
    const std::string phase =
        (braked->frozen ? "frozen, " : "") + std::string(phases.at(static_cast<std::size_t>(braked->phase)));
    return braked->why.empty() ? phase : phase + ": " + braked->why;
  }
  return std::string(name(progress));
}

struct FakeSubject final : HeldEnd::Subject {
  using Subject::Subject;
  [[nodiscard]] bool has_ended() const override { return ended; }
  [[nodiscard]] bool is_given_up() const override { return given_up; }

  bool ended = false;
  bool given_up = false;
};

/// A pod of one container that is to be killed, and whatever holds it is the test's.
struct Scene {
  explicit Scene(HeldEnd::Options options = {.time = {.brake = 600s}}) : options{options} {
    cgroups.sync(std::array{node::PodCgroup{"a", "/kubepods/poda"}});
    auto spec = fixture::pod("a", {fixture::container("web")});
    pods::RuntimePod running{.pod = std::make_shared<const core::Pod>(spec), .sandbox_id = "s1"};
    running.cgroup = "/kubepods/poda";
    running.containers.push_back({.id = "web", .name = "web", .state = pods::ContainerState::Running});
    runtime::v1::Container listed;
    listed.set_id("web");
    runtime.put(listed, "{}");
    runtime.hang("StopContainer");
    runtime.start();
    const Shortage shortage{.signal = core::Signal::MemoryAvailable,
                            .required = 100_MiB,
                            .available = 90_MiB,
                            .intent = 7,
                            .message = "short"};
    subject = std::make_shared<FakeSubject>(
        std::make_shared<const pods::RuntimePod>(std::move(running)), shortage,
        [this](const Progress& progress) {
          told.push_back(describe(progress));
          if (const auto* asked = std::get_if<HooksAsked>(&progress)) answers = asked->answers;
        },
        true);
  }

  [[nodiscard]] bool wants() const { return held_end.wants(*subject->pod, subject->shortage); }
  void begin() {
    asio::co_spawn(reactor, held_end.run(subject), [this](const std::exception_ptr& thrown, HeldEnd::Outcome result) {
      if (thrown) std::rethrow_exception(thrown);
      outcome = std::move(result);
    });
  }
  template <class Done>
  [[nodiscard]] bool reaches(Done done) {
    return test::run_until(reactor, done);
  }
  /// The line that comes of it.
  std::string finish() {
    REQUIRE(reaches([&] { return outcome.has_value(); }));
    held_end.finish(*subject, *outcome);
    return told.empty() ? "" : told.back();
  }
  [[nodiscard]] bool was_told(const std::string& line) const { return std::ranges::find(told, line) != told.end(); }

  HeldEnd::Options options;
  test::FakeRuntime runtime;
  fixture::Tree tree{fixture::v2_node({}, 0, {dir("kubepods", {dir("poda", fixture::v2_memory({.usage = 300_MiB}))})})};
  node::CgroupHierarchy hierarchy = fixture::value_of(node::CgroupHierarchy::detect(tree.path("cgroup")));
  node::PodCgroups cgroups{hierarchy};
  FakeHolder holder;
  FakeProbe probe;
  FakeHooks hooks;
  Lines told{};
  std::vector<HookAnswer> answers{};  // as they were told
  asio::io_context reactor{1};
  cri::Client client{reactor.get_executor(), runtime.endpoint(), 2s};
  std::shared_ptr<FakeSubject> subject;
  std::optional<HeldEnd::Outcome> outcome{};
  HeldEnd held_end{reactor.get_executor(),
                   {.runtime = client,
                    .hierarchy = hierarchy,
                    .cgroups = cgroups,
                    .holder = &holder,
                    .memory = &probe,
                    .hooks = &hooks},
                   options};
};

}  // namespace

TEST_CASE("only a pod that time may help is held") {
  CHECK(Scene{}.wants());
  CHECK_FALSE(Scene{HeldEnd::Options{}}.wants());
  Scene below;
  below.subject->shortage.available = 49_MiB;
  CHECK_FALSE(below.wants());
  Scene ends;
  ends.held_end.hurry();
  CHECK_FALSE(ends.wants());
  Scene asks{{.time = {.hooks = 600s}}};
  CHECK_FALSE(asks.wants());
  asks.hooks.any = true;
  CHECK(asks.wants());
}

TEST_CASE("a pod that ends by itself is held until then, and let go") {
  Scene scene;
  scene.begin();
  REQUIRE(scene.reaches([&] { return scene.runtime.calls("StopContainer") == 1; }));
  CHECK(scene.told == Lines{"held"});
  CHECK(scene.holder.lines == Lines{"brake a"});
  scene.subject->ended = true;
  CHECK(scene.finish() == "ended");
  CHECK(scene.holder.lines == Lines{"brake a", "let go a"});
}

TEST_CASE("where too little is left before a pod is held it is not waited for, and let go should it be held then") {
  Scene scene;
  scene.holder.is_slow = true;
  scene.begin();
  REQUIRE(scene.reaches([&] { return !scene.holder.lines.empty(); }));
  CHECK_FALSE(scene.outcome.has_value());
  scene.probe.bytes = 1;
  REQUIRE(scene.reaches([&] { return scene.outcome.has_value(); }));
  REQUIRE(scene.outcome->refused.has_value());
  CHECK(scene.outcome->refused->message == "until it was held memory.available fell to 0 MiB");
  CHECK(scene.told.empty());
  scene.holder.is_slow = false;
  CHECK(scene.reaches([&] { return scene.holder.lines == Lines{"brake a", "let go a"}; }));
}

TEST_CASE("the runtime's word that it has stopped counts as well") {
  Scene scene;
  scene.runtime.recover("StopContainer");
  scene.begin();
  CHECK(scene.finish() == "ended");
}

TEST_CASE("a pod is killed once its time is over, and no failure is told of the call that is broken off") {
  Scene scene{{.time = {.brake = 50ms}}};
  scene.begin();
  CHECK(scene.finish() == "killed");
  CHECK(scene.told == Lines{"held", "killed"});
}

TEST_CASE("a pod is killed before its time is over") {
  Scene scene;
  scene.begin();
  REQUIRE(scene.reaches([&] { return scene.was_told("held"); }));
  SUBCASE("when the node falls below the floor") {
    scene.probe.bytes = 49_MiB;
    CHECK(scene.finish() == "killed: memory.available fell to 49 MiB");
  }
  SUBCASE("when nobody can say what is available") {
    scene.probe.bytes.reset();
    CHECK(scene.finish() == "killed: memory.available cannot be read");
  }
  SUBCASE("when another eviction takes over") {
    scene.subject->given_up = true;
    CHECK(scene.finish() == "killed: another eviction of it took over");
  }
  SUBCASE("when evictd ends") {
    scene.held_end.hurry();
    CHECK(scene.finish() == "killed: evictd ends");
  }
  SUBCASE("when it does nothing") {
    scene.tree.add("cgroup/kubepods/poda", file("cpu.stat", "usage_usec 1000\n"));
    CHECK(scene.finish() == "killed: for 2s it neither shrank nor did anything");
  }
  CHECK(scene.holder.lines == Lines{"brake a", "let go a"});
}

TEST_CASE("a pod has its headroom by quarters, when it stands at its limit") {
  Scene scene;
  scene.begin();
  REQUIRE(scene.reaches([&] { return scene.was_told("held"); }));
  CHECK(scene.holder.headroom == 8_MiB);
  scene.tree.write("cgroup/kubepods/poda/memory.current", std::to_string(400_MiB) + "\n");
  REQUIRE(scene.reaches([&] { return scene.holder.lines.size() == 4; }));
  scene.subject->ended = true;
  CHECK(scene.finish() == "ended");
  CHECK(scene.holder.lines ==
        Lines{"brake a", "widen a to 316 MiB", "widen a to 324 MiB", "widen a to 332 MiB", "let go a"});
  CHECK(scene.outcome->brake->limit == 332_MiB);
}

TEST_CASE("a pod that cannot be held is given no time, and nobody is asked") {
  const fixture::CapturedLog log;
  Scene scene;
  scene.hooks.any = true;
  scene.holder.refuses = true;
  scene.begin();
  CHECK(scene.finish().empty());
  CHECK(scene.outcome->refused.has_value());
  CHECK(scene.hooks.asked.empty());
  CHECK(scene.runtime.calls("StopContainer") == 0);
  CHECK(scene.holder.lines == Lines{"brake a"});
}

TEST_CASE("without a brake the pod is frozen while others are asked, and is told nothing") {
  Scene scene{{.time = {.hooks = 600s}}};
  scene.hooks.any = true;
  scene.begin();
  CHECK(scene.finish() == "frozen, killed");
  CHECK(scene.told == Lines{"frozen, held", "asked", "frozen, killed"});
  CHECK(scene.hooks.asked == Lines{"short"});
  CHECK(scene.hooks.told.pod->uid == "a");
  CHECK(scene.hooks.told.cgroup == "/kubepods/poda");
  CHECK(scene.hooks.told.id == 7);
  CHECK(scene.holder.lines == Lines{"freeze a", "let go a"});
  CHECK(scene.runtime.calls("StopContainer") == 0);
}

TEST_CASE("a frozen pod is said to be held before anybody answers, and no more once it goes") {
  Scene scene{{.time = {.hooks = 600s}}};
  scene.hooks.any = true;
  scene.hooks.answers = false;
  scene.begin();
  REQUIRE(scene.reaches([&] { return scene.hooks.asked.size() == 1; }));
  CHECK(scene.told == Lines{"frozen, held"});
  scene.probe.bytes = 1_MiB;
  scene.finish();
  CHECK(scene.told == Lines{"frozen, held", "asked", "frozen, killed: memory.available fell to 1 MiB"});
}

TEST_CASE("where the wait for answers ends early those that came are told, and that the others have not in time") {
  Scene scene{{.time = {.brake = 600s, .hooks = 600s}}};
  scene.hooks.any = true;
  scene.hooks.answers = false;
  scene.begin();
  REQUIRE(scene.reaches([&] { return scene.hooks.asked.size() == 1; }));
  scene.probe.bytes = 1_MiB;
  scene.finish();
  REQUIRE(scene.answers.size() == 2);
  CHECK(scene.answers[0].hook == "page");
  CHECK(scene.answers[0].outcome == "done");
  CHECK(scene.answers[0].took == 1ms);
  CHECK(scene.answers[1].hook == "dump");
  CHECK(scene.answers[1].outcome == "no answer in time");
  CHECK(scene.answers[1].took > 0s);
}

TEST_CASE("who is asked has the time of its own, and no more") {
  Scene scene{{.time = {.brake = 1ms, .hooks = 600s}}};
  scene.hooks.any = true;
  scene.hooks.answers = false;
  scene.begin();
  REQUIRE(scene.reaches([&] { return scene.hooks.asked.size() == 1; }));
  SUBCASE("the brake's may be over before") {
    scene.hooks.answers = true;
    CHECK(scene.finish() == "killed");
    CHECK(scene.told == Lines{"held", "asked", "killed"});
  }
  SUBCASE("below the floor nobody is waited for") {
    scene.probe.bytes = 1_MiB;
    CHECK(scene.finish() == "killed: memory.available fell to 1 MiB");
    CHECK(scene.reaches([&] { return scene.hooks.open == 0; }));
    CHECK(scene.told == Lines{"held", "asked", "killed: memory.available fell to 1 MiB"});
  }
}

TEST_CASE("the runtime kills nobody while those that are asked have time") {
  Scene scene{{.time = {.brake = 5s, .hooks = 40s}}};
  scene.hooks.any = true;
  scene.runtime.recover("StopContainer");
  scene.begin();
  scene.finish();
  CHECK(scene.runtime.last_grace() == 40s);
}

TEST_CASE("one who never answers holds up nothing beyond its time") {
  Scene scene{{.time = {.hooks = 20ms}}};
  scene.hooks.any = true;
  scene.hooks.answers = false;
  scene.begin();
  CHECK(scene.finish() == "frozen, killed");
  CHECK(scene.reaches([&] { return scene.hooks.open == 0; }));
}

}  // namespace evictd::evict::held_end_test
