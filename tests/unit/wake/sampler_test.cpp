#include "wake/sampler.hpp"

#include <doctest/doctest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <optional>
#include <utility>

namespace evictd::wake::sampler_test {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using core::Signal;

constexpr std::int64_t mebi = 1 << 20;

/// Something that runs out, with a count of how often it was asked.
struct Stock final : node::SignalProbe {
  std::optional<std::int64_t> left;
  std::int64_t hidden = 0;  // of it, from the cheaper look
  bool guarded = false;
  mutable int exact_looks = 0;
  mutable int cheap_looks = 0;

  [[nodiscard]] std::span<const Signal> signals() const override { return {}; }  // a gauge names its own
  [[nodiscard]] std::optional<std::int64_t> available(Signal /*signal*/) const override {
    ++exact_looks;
    return left;
  }
  [[nodiscard]] std::optional<std::int64_t> available_at_least(Signal /*signal*/) const override {
    ++cheap_looks;
    return left ? std::optional{*left - hidden} : std::nullopt;
  }
  [[nodiscard]] Gauge gauge(Signal signal, core::Duration longest = 1s) {
    return {
        .signal = signal,
        .pace = {.rate = 1024.0 * mebi, .fastest = 1024.0 * mebi, .shortest = 1ms, .longest = longest, .step = mebi},
        .probe = this,
        .guarded = [this] { return guarded; }};
  }
};

/// What is read beside the loop: when the test says so.
struct SlowStock final : node::SignalProbe {
  std::int64_t left = 100 * mebi;
  int asked = 0;
  std::move_only_function<void()> answer;

  [[nodiscard]] std::span<const Signal> signals() const override { return {}; }
  [[nodiscard]] std::optional<std::int64_t> available(Signal /*signal*/) const override { return left; }
  [[nodiscard]] bool takes_time() const override { return true; }
  void look(Signal /*signal*/, std::move_only_function<void()> then) override {
    ++asked;
    answer = std::move(then);
  }
};

/// A sampler of memory and of nodefs, and a loop that collects what it says.
struct Loop {
  Stock memory, nodefs;
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  Sampler sampler;
  std::vector<std::string> said;

  explicit Loop(core::Duration longest = 1s)
      : sampler{reactor.get_executor(),
                wakes,
                {memory.gauge(Signal::MemoryAvailable, longest), nodefs.gauge(Signal::NodefsAvailable, longest)}} {
    asio::co_spawn(reactor, listen(), asio::detached);
  }
  asio::awaitable<void> listen() {
    for (;;) {
      const auto wake = co_await wakes.next();
      for (const auto& reason : wake.reasons)
        said.push_back(std::string(core::name(reason.source)) + " " + reason.detail);
    }
  }
  /// As after a pass: `thresholds` of memory, one of nodefs where it has anything available.
  void arm(std::vector<std::int64_t> thresholds, core::Instant time = std::chrono::steady_clock::now()) {
    Arming arming;
    arming.time = time;
    for (const auto threshold : thresholds)
      arming.levels.push_back({Signal::MemoryAvailable, true, threshold, memory.left.value_or(0)});
    if (nodefs.left) arming.levels.push_back({Signal::NodefsAvailable, true, 10 * mebi, *nodefs.left});
    sampler.arm(arming);
  }
  /// As after a pass, with a hard threshold of 100 MiB and a soft one of 400 MiB.
  void arm_both(bool nobody_goes = false) {
    Arming arming;
    arming.time = std::chrono::steady_clock::now();
    arming.levels = {{Signal::MemoryAvailable, true, 100 * mebi, *memory.left},
                     {Signal::MemoryAvailable, false, 400 * mebi, *memory.left}};
    arming.nobody_goes = nobody_goes;
    sampler.arm(arming);
  }
  void look_twice() {
    const auto looks = memory.exact_looks + memory.cheap_looks;
    CHECK(run_until([&] { return memory.exact_looks + memory.cheap_looks > looks + 1; }));
  }
  /// Until this holds: it will, in milliseconds.
  bool run_until(const auto& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    while (!condition() && std::chrono::steady_clock::now() < give_up) {
      reactor.restart();
      reactor.run_one_for(100ms);
    }
    return condition();
  }
  [[nodiscard]] SourceStatus status(std::size_t entry = 0) const { return sampler.status().at(entry); }
};

struct Approaches final : ApproachListener {
  void approaches() override { ++told; }
  void recedes() override { ++receded; }
  [[nodiscard]] bool is_quick() const override { return quick; }
  int told = 0;
  int receded = 0;
  bool quick = false;
};

}  // namespace

TEST_CASE("that a threshold on memory is near is told after each look; of one that is far, or met, nothing is") {
  Loop loop;
  Approaches approaches;
  loop.sampler.tell(approaches);
  loop.memory.left = 150 * mebi;  // at 1 GiB/s it is crossed in 49 ms
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return approaches.told >= 2; }));
  for (const auto left : {700 * mebi, 50 * mebi}) {
    CAPTURE(left);
    loop.memory.left = left;
    loop.arm({100 * mebi});
    approaches.told = 0;
    const auto looks = loop.memory.exact_looks + loop.memory.cheap_looks;
    CHECK(loop.run_until([&] { return loop.memory.exact_looks + loop.memory.cheap_looks > looks + 1; }));
    CHECK(approaches.told == 0);
  }
}

TEST_CASE("that a threshold is near no more is told once, and not while one is met; all listeners hear the same") {
  Loop loop;
  Approaches approaches;
  Approaches second;
  loop.sampler.tell(approaches);
  loop.sampler.tell(second);
  const auto look_twice = [&] {
    const auto looks = loop.memory.exact_looks + loop.memory.cheap_looks;
    CHECK(loop.run_until([&] { return loop.memory.exact_looks + loop.memory.cheap_looks > looks + 1; }));
  };
  loop.memory.left = 700 * mebi;
  loop.arm({100 * mebi});
  look_twice();
  CHECK(approaches.receded == 0);  // it never was near
  loop.memory.left = 150 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return approaches.told >= 1; }));
  CHECK(approaches.receded == 0);
  loop.memory.left = 50 * mebi;
  loop.arm({100 * mebi});
  look_twice();
  CHECK(approaches.receded == 0);
  loop.memory.left = 700 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return approaches.receded == 1; }));
  look_twice();
  CHECK(approaches.receded == 1);
  CHECK(second.receded == 1);
  CHECK(second.told == approaches.told);
}

TEST_CASE("that a soft threshold is met, which a pass has seen, keeps nobody from hearing that the hard one is near") {
  Loop loop;
  Approaches approaches;
  loop.sampler.tell(approaches);
  loop.memory.left = 150 * mebi;
  loop.arm_both();
  CHECK(loop.run_until([&] { return approaches.told >= 2; }));
  // Nor that it is half way between them.
  loop.memory.left = 250 * mebi;
  loop.arm_both();
  approaches.told = 0;
  CHECK(loop.run_until([&] { return approaches.told >= 1; }));
  CHECK(approaches.receded == 0);
}

TEST_CASE("of a threshold whose crossing no pass has seen nothing is told before the pass") {
  Loop loop;
  Approaches approaches;
  loop.sampler.tell(approaches);
  SUBCASE("a soft one") {
    loop.memory.left = 401 * mebi;
    loop.arm_both();
    loop.memory.left = 399 * mebi;
  }
  SUBCASE("a hard one, beside a soft one that is met") {
    loop.memory.left = 101 * mebi;
    loop.arm_both();
    loop.memory.left = 99 * mebi;
  }
  CHECK(loop.run_until([&] { return !loop.said.empty(); }));
  approaches.told = 0;
  loop.look_twice();
  CHECK(approaches.told == 0);
}

TEST_CASE("a hard threshold that is met is told of where nobody goes for it, and only there") {
  Loop loop;
  Approaches approaches;
  loop.sampler.tell(approaches);
  loop.memory.left = 50 * mebi;
  loop.arm_both();
  loop.look_twice();
  CHECK(approaches.told == 0);
  loop.arm_both(true);
  CHECK(loop.run_until([&] { return approaches.told >= 2; }));
}

TEST_CASE("where there are no thresholds any more none is near") {
  Loop loop;
  Approaches approaches;
  loop.sampler.tell(approaches);
  loop.memory.left = 150 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return approaches.told >= 1; }));
  loop.arm({});
  CHECK(approaches.receded == 1);
}

TEST_CASE("that a threshold may be met in a moment is told to those whom that does not hold up") {
  Loop loop;
  Approaches slow;
  Approaches quick;
  quick.quick = true;
  loop.sampler.tell(slow);
  loop.sampler.tell(quick);
  loop.memory.left = 103 * mebi;  // at 1 GiB/s it is crossed in 3 ms
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return quick.told >= 2; }));
  CHECK(slow.told == 0);
}

TEST_CASE("in a hurry that is not the node's own a threshold is as near as it is") {
  Loop loop;
  Approaches approaches;
  loop.sampler.tell(approaches);
  loop.memory.left = 150 * mebi;
  loop.arm({100 * mebi});
  loop.sampler.poll_fast(10min);
  CHECK(loop.run_until([&] { return approaches.told >= 2; }));
  loop.memory.left = 700 * mebi;
  CHECK(loop.run_until([&] { return approaches.receded == 1; }));
}

TEST_CASE("where one signal of memory is short nobody is told that another one is near: the pass comes first") {
  Stock node;
  Stock allocatable;
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  Sampler sampler{reactor.get_executor(),
                  wakes,
                  {allocatable.gauge(Signal::AllocatableMemoryAvailable, 1s), node.gauge(Signal::MemoryAvailable, 1s)}};
  Approaches approaches;
  sampler.tell(approaches);
  node.left = 50 * mebi;
  allocatable.left = 150 * mebi;
  Arming arming;
  arming.time = std::chrono::steady_clock::now();
  arming.levels = {{Signal::MemoryAvailable, true, 100 * mebi, 50 * mebi},
                   {Signal::AllocatableMemoryAvailable, true, 100 * mebi, 150 * mebi}};
  sampler.arm(arming);
  const auto give_up = std::chrono::steady_clock::now() + 30s;
  while (allocatable.exact_looks + allocatable.cheap_looks < 4 && std::chrono::steady_clock::now() < give_up)
    reactor.run_one_for(100ms);
  CHECK(allocatable.exact_looks + allocatable.cheap_looks >= 4);
  CHECK(approaches.told == 0);
}

TEST_CASE("a crossing that no pass has seen wakes one, which says by whom and what") {
  Loop loop;
  loop.memory.left = 101 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return loop.memory.cheap_looks > 3; }));
  CHECK(loop.said.empty());
  loop.memory.left = 99 * mebi;
  CHECK(loop.run_until([&] { return !loop.said.empty(); }));
  CHECK(loop.said == std::vector<std::string>{"sampler memory.available<100Mi"});

  const auto looks = loop.memory.exact_looks;
  CHECK(loop.run_until([&] { return loop.memory.exact_looks > looks + 3; }));
  CHECK(loop.said.size() == 1);
  CHECK(loop.status().wakes == 1);
  CHECK(loop.status().last_wake);
}

TEST_CASE("gauges without a level are not looked at, and with none there is nothing to wait for") {
  Loop loop;
  CHECK(loop.status().name == "sampler");
  CHECK(loop.status().state == "waiting: no level yet");
  loop.memory.left = 100 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return loop.memory.cheap_looks > 3; }));
  CHECK(loop.nodefs.cheap_looks == 0);
  CHECK(loop.sampler.status().size() == 1);
  loop.arm({});
  const auto looks = loop.memory.cheap_looks;
  loop.reactor.restart();
  loop.reactor.run_for(30ms);
  CHECK(loop.memory.cheap_looks == looks);
}

TEST_CASE("every gauge is watched by itself, and status tells of each") {
  Loop loop;
  loop.memory.left = 1000 * 1024 * mebi;
  loop.nodefs.left = 11 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.status(0).name == "sampler memory.available");
  CHECK(loop.status(0).state == "every 1s");
  CHECK(loop.status(1).name == "sampler nodefs.available");
  CHECK(loop.status(1).state == "every 1ms");
  CHECK(loop.status(1).detail == "taken at most at 1Gi/s; 0 looks");
  loop.nodefs.left = 9 * mebi;
  CHECK(loop.run_until([&] { return !loop.said.empty(); }));
  CHECK(loop.said == std::vector<std::string>{"sampler nodefs.available<10Mi"});
  CHECK(loop.status(0).wakes == 0);
  CHECK(loop.status(1).wakes == 1);
}

TEST_CASE("where the cheaper look says enough, the exact one is spared") {
  Loop loop;
  loop.memory.left = 110 * mebi;
  loop.arm({100 * mebi});
  CHECK(loop.run_until([&] { return loop.memory.cheap_looks > 20; }));
  CHECK(loop.memory.exact_looks < 10);  // one to know what is hidden, and one a second

  // What may be hidden is much more than what is left by the cheap look.
  loop.memory.hidden = 9 * mebi + mebi / 2;
  const auto looks = loop.memory.exact_looks;
  CHECK(loop.run_until([&] { return loop.memory.exact_looks > looks + 3; }));
  CHECK(loop.said.empty());

  // By the cheap look the threshold would be met; it is not.
  loop.memory.hidden = 100 * mebi;
  const auto more_looks = loop.memory.exact_looks;
  CHECK(loop.run_until([&] { return loop.memory.exact_looks > more_looks + 3; }));
  CHECK(loop.said.empty());
}

TEST_CASE("what the kernel guards is left alone until the cheaper look says that a threshold may be met") {
  Loop loop{20ms};
  loop.memory.left = 101 * mebi;
  loop.memory.guarded = true;
  loop.arm({100 * mebi});
  CHECK(loop.status().state == "every 20ms");
  CHECK(loop.status().detail.starts_with("the kernel watches from afar; "));
  CHECK(loop.run_until([&] { return loop.memory.cheap_looks > 3; }));
  CHECK(loop.memory.exact_looks == 0);
  loop.memory.hidden = 2 * mebi;
  CHECK(loop.run_until([&] { return loop.memory.exact_looks > 3; }));
  CHECK(loop.status().state == "every 1ms");
  loop.memory.hidden = 0;
  loop.memory.guarded = false;
  loop.arm({100 * mebi});
  CHECK(loop.status().state == "every 1ms");
}

TEST_CASE("in a hurry memory is looked at as often as can be, guarded or far away; disks are not") {
  Loop loop{10s};
  loop.memory.left = 1000 * 1024 * mebi;
  loop.memory.guarded = true;
  loop.nodefs.left = 1000 * 1024 * mebi;
  loop.arm({100 * mebi});
  loop.sampler.poll_fast(10min);
  CHECK(loop.run_until([&] { return loop.memory.cheap_looks + loop.memory.exact_looks > 5; }));
  CHECK(loop.status(0).state == "every 1ms");
  CHECK(loop.nodefs.cheap_looks == 0);
}

TEST_CASE("a gauge that cannot be read is passed over until it can, and wakes nobody") {
  Loop loop{20ms};
  loop.memory.left = 101 * mebi;
  loop.arm({100 * mebi});
  loop.memory.left.reset();
  CHECK(loop.run_until([&] { return loop.memory.exact_looks > 2; }));
  CHECK(loop.said.empty());
  loop.memory.left = 50 * mebi;
  CHECK(loop.run_until([&] { return !loop.said.empty(); }));
}

TEST_CASE("armed once more by a reading it knows, it keeps to what it has seen since") {
  Loop loop;
  loop.memory.left = 101 * mebi;
  const auto read = std::chrono::steady_clock::now();
  loop.arm({100 * mebi}, read);
  loop.memory.left = 99 * mebi;
  CHECK(loop.run_until([&] { return !loop.said.empty(); }));
  loop.memory.left = 101 * mebi;
  loop.arm({100 * mebi}, read);  // the pods' list changed, the node was not read anew
  CHECK(loop.run_until([&] { return loop.said.size() == 2; }));
}

TEST_CASE("what is read beside the loop is seen when it comes, and asked for again where it does not") {
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  SlowStock disk;
  const Gauge gauge{
      .signal = Signal::NodefsAvailable,
      .pace = {.rate = 1024.0 * mebi, .fastest = 1024.0 * mebi, .shortest = 1ms, .longest = 20ms, .step = mebi},
      .probe = &disk};
  std::optional<Sampler> sampler{std::in_place, reactor.get_executor(), wakes, std::vector{gauge}};
  Arming arming;
  arming.time = std::chrono::steady_clock::now();
  arming.levels.push_back({Signal::NodefsAvailable, true, 10 * mebi, disk.left});
  sampler->arm(arming);
  const auto run_until_asked = [&](int times) {
    while (disk.asked < times) REQUIRE(reactor.run_one_for(10s) > 0);
  };
  run_until_asked(2);
  disk.left = 5 * mebi;
  CHECK(sampler->status().front().wakes == 0);
  disk.answer();
  CHECK(sampler->status().front().wakes == 1);
  run_until_asked(3);
  auto late = std::move(disk.answer);
  sampler.reset();
  late();
}

}  // namespace evictd::wake::sampler_test
