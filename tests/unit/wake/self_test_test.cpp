#include "wake/self_test.hpp"

#include <dirent.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "fixture/real_cgroup.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"
#include "wake/heard_sources.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::wake::self_test_test {
namespace {

using fixture::own_cgroup;
using fixture::real_hierarchy;
using fixture::RealCgroup;

/// Descriptors of this process that are of a kind: "eventfd", "eventpoll".
std::vector<int> descriptors(const std::string& kind) {
  std::vector<int> result;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) == "anon_inode:[" + kind + "]")
      result.push_back(std::stoi(entry.path().filename()));
  }
  return result;
}

/// One beside the self-test.
struct OtherSource final : Source {
  void arm(const Arming& /*arming*/) override {}
  void rearm_all() override { ++rearmed; }
  [[nodiscard]] std::vector<SourceStatus> status() const override { return {}; }

  int rearmed = 0;
};
using Sources = std::vector<std::unique_ptr<Source>>;

struct Watched : test::HeardSources {
  RealCgroup node{own_cgroup("-self-test")};
  RealCgroup pods{node.path() + "/kubepods"};  // on v2 it is for them that controllers are handed down
  node::CgroupHierarchy hierarchy = real_hierarchy();
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::vector<int> own = descriptors("eventfd");  // by which the reactor wakes itself
  std::vector<std::string> passes;
  Sources sources;
  std::optional<SelfTest> test;

  explicit Watched(core::Duration interval) {
    wakes.listen(*this);
    sources.push_back(std::make_unique<OtherSource>());
    test.emplace(reactor.get_executor(), wakes, hierarchy,
                 SelfTest::Options{.path = path(), .interval = interval, .patience = 300ms}, sources);
    asio::co_spawn(reactor, run(), asio::detached);
    reactor.poll();
  }
  /// As the agent does it: after each wake-up all sources are armed.
  asio::awaitable<void> run() {
    for (;;) {
      passes.push_back((co_await wakes.next()).reasons[0].detail);
      arm();
    }
  }
  [[nodiscard]] int rearmed() const { return dynamic_cast<const OtherSource&>(*sources.front()).rearmed; }
  void arm(std::int64_t available = 2) {
    Arming arming;
    arming.levels.push_back({.signal = core::Signal::MemoryAvailable, .threshold = 1, .available = available});
    test->arm(arming);
  }
  bool comes_true(const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    while (!condition() && std::chrono::steady_clock::now() < give_up) reactor.run_one_for(20ms);
    return condition();
  }
  bool passed(int times) {
    return comes_true([&] { return status().detail.find(fmt::format("; {} passed", times)) != std::string::npos; });
  }
  [[nodiscard]] SourceStatus status() const { return test->status().at(0); }
  [[nodiscard]] std::string path() const { return node.path() + "/evictd-probe"; }
  [[nodiscard]] std::string directory() const { return hierarchy.root().path() + path(); }

  /// Takes all that the kernel would tell out of the reactor's sample: nothing else about it changes.
  void deafen() const {
    for (const int epoll : descriptors("eventpoll"))
      for (const int event : descriptors("eventfd"))
        if (std::ranges::find(own, event) == own.end()) ::epoll_ctl(epoll, EPOLL_CTL_DEL, event, nullptr);
  }
};

bool on_v1() { return real_hierarchy().version() == node::CgroupVersion::v1; }

}  // namespace

TEST_SUITE("real cgroups") {
  TEST_CASE("the kernel tells of a level that is crossed on purpose, again and again, and nobody is woken by it") {
    SKIP_IF(fixture::no_real_cgroups());
    Watched watched{50ms};
    CHECK(watched.status().name == "self-test " + watched.path());
    CHECK(watched.status().state == "armed");
    CHECK(watched.passed(3));
    CHECK(watched.status().detail.find(", the last one told after ") != std::string::npos);
    CHECK(watched.status().missed == 0);
    CHECK(watched.status().re_registrations == 0);
    CHECK(watched.passes.empty());
    CHECK(watched.failures.empty());
    const auto directory = watched.directory();
    CHECK(std::filesystem::exists(directory));
    watched.test.reset();  // in the middle of a test, maybe
    CHECK_FALSE(std::filesystem::exists(directory));
  }

  TEST_CASE("a kernel that falls silent is noticed: all register anew, a pass begins, and the next test passes") {
    SKIP_IF(fixture::no_real_cgroups());
    if (!on_v1()) return;
    Watched watched{50ms};
    REQUIRE(watched.passed(1));
    watched.deafen();
    REQUIRE(watched.comes_true([&] { return watched.rearmed() == 1; }));
    CHECK(watched.status().missed == 1);
    CHECK(watched.status().re_registrations == 1);
    CHECK(watched.recoveries == std::vector<std::string>{"registered with the kernel anew: a self-test failed"});
    CHECK(watched.comes_true([&] { return watched.passes.size() == 1; }));
    CHECK(watched.passed(3));
    CHECK(watched.failures.empty());
    CHECK(watched.rearmed() == 1);
  }

  TEST_CASE("one that stays silent is said once and stays in the status until it speaks again") {
    SKIP_IF(fixture::no_real_cgroups());
    if (!on_v1()) return;
    Watched watched{50ms};
    const auto keep_deaf = [&](const std::function<bool()>& until) {
      return watched.comes_true([&] {
        watched.deafen();
        return until();
      });
    };
    REQUIRE(keep_deaf([&] { return watched.status().missed >= 4; }));
    REQUIRE(watched.failures.size() == 1);
    CHECK(watched.failures[0] == "the kernel does not tell that a level of " + watched.path() +
                                     " was crossed, nor since it was registered anew");
    CHECK(watched.status().state.starts_with("failed: the kernel does not tell"));
    CHECK(watched.passed(1));
    CHECK(watched.status().state == "armed");
  }

  TEST_CASE("a probe that is removed, or removed and made again, is registered anew at once") {
    SKIP_IF(fixture::no_real_cgroups());
    if (!on_v1()) return;
    Watched watched{1h};
    REQUIRE(::rmdir(watched.directory().c_str()) == 0);
    REQUIRE(watched.comes_true([&] { return watched.status().re_registrations == 1; }));
    CHECK(std::filesystem::exists(watched.directory()));
    REQUIRE(::rmdir(watched.directory().c_str()) == 0);
    REQUIRE(::mkdir(watched.directory().c_str(), 0755) == 0);
    REQUIRE(watched.comes_true([&] { return watched.status().re_registrations == 2; }));
    CHECK(watched.recoveries.back() == "registered with the kernel anew: its cgroup was removed and made anew");
    CHECK(watched.status().missed == 0);
  }

  TEST_CASE("while memory is short nothing is tested") {
    SKIP_IF(fixture::no_real_cgroups());
    Watched watched{50ms};
    watched.arm(0);
    watched.reactor.run_for(500ms);
    CHECK(watched.status().detail.find("; 0 passed") != std::string::npos);
    watched.reactor.restart();
    watched.arm();
    CHECK(watched.passed(1));
  }
}

TEST_CASE("a cgroup that was made goes, even where the kernel could not be asked to watch it") {
  const fixture::Tree tree{fixture::dir("memory", {fixture::file("memory.usage_in_bytes", "0\n")})};
  const auto hierarchy = node::CgroupHierarchy::detect(tree.path());
  REQUIRE(hierarchy);
  asio::io_context reactor{1};
  {
    struct Deaf final : ProbeCgroup::Listener {
      void probe_crossed() override {}
    };
    Deaf deaf;
    ProbeCgroup probe{reactor.get_executor(), *hierarchy, "/evictd-probe", deaf};
    CHECK_FALSE(probe.open());
    CHECK(std::filesystem::exists(tree.path("memory/evictd-probe")));
  }
  CHECK_FALSE(std::filesystem::exists(tree.path("memory/evictd-probe")));
}

TEST_CASE("where no cgroup can be made that is said once, and evictd goes on") {
  const fixture::Tree tree{fixture::dir("memory", {fixture::file("memory.usage_in_bytes", "0\n"),
                                                   fixture::dir("node", {fixture::file("evictd-probe", "")})})};
  const auto hierarchy = node::CgroupHierarchy::detect(tree.path());
  REQUIRE(hierarchy);
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  test::HeardSources heard;
  const Sources none;
  SelfTest test{reactor.get_executor(), wakes, *hierarchy, {.path = "/node/evictd-probe", .interval = 20ms}, none};
  wakes.listen(heard);
  const Arming nothing;
  test.arm(nothing);
  test.arm(nothing);
  reactor.run_for(100ms);
  CHECK(heard.failed ==
        std::vector<std::string>{"self-test: " + tree.path("memory/node/evictd-probe").native() + ": Not a directory"});
  CHECK(test.status().at(0).state.starts_with("failed: "));
}

}  // namespace evictd::wake::self_test_test
