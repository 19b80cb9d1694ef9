#include "wake/memcg_threshold.hpp"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "fixture/real_cgroup.hpp"
#include "support/skip.hpp"
#include "wake/heard_sources.hpp"

using namespace std::chrono_literals;

namespace evictd::wake::memcg_threshold_test {
namespace {

using fixture::RealCgroup;

constexpr std::int64_t mebi = 1 << 20;

/// A process that holds so much of the cgroup's memory.
class Holder {
 public:
  Holder(const RealCgroup& cgroup, std::int64_t bytes) {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      cgroup.put(::getpid());
      const std::vector<char> memory(static_cast<std::size_t>(bytes), 'x');
      static_cast<void>(::write(ready[1], memory.data(), 1));
      for (;;) ::pause();
    }
    char there = 0;
    CHECK(::read(ready[0], &there, 1) == 1);
    for (const auto end : ready) ::close(end);
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

/// A threshold of 100 MiB on a node of 1000, with so much file cache in the usage.
Level level(std::int64_t usage, std::int64_t cache) {
  return {.signal = core::Signal::MemoryAvailable,
          .threshold = 100 * mebi,
          .available = 1000 * mebi - usage + cache,
          .usage = UsageLevel{
              .bytes = 900 * mebi + cache, .without_reclaimable = 900 * mebi, .current = usage, .incarnation = 1}};
}

}  // namespace

TEST_CASE("with file cache in the usage, the kernel also watches the level from which on the cache can make room") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  if (hierarchy.version() == node::CgroupVersion::v2) return;
  const RealCgroup cgroup{fixture::own_cgroup("-memcg")};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  MemcgThreshold threshold{reactor.get_executor(), wakes, core::Signal::MemoryAvailable, hierarchy, cgroup.path()};
  const auto armed = [&](std::int64_t usage, std::int64_t cache) {
    Arming arming;
    arming.levels.push_back(level(usage, cache));
    threshold.arm(arming);
    std::vector<std::pair<std::string, std::int64_t>> result;
    for (const auto& status : threshold.status()) result.emplace_back(status.name, status.level.value_or(0));
    return result;
  };
  const std::pair<std::string, std::int64_t> early{"memcg memory.available<100Mi unless file cache", 900 * mebi};
  const auto met_at = [](std::int64_t usage) { return std::pair{std::string{"memcg memory.available<100Mi"}, usage}; };
  CHECK_FALSE(threshold.guards());

  CHECK(armed(500 * mebi, 300 * mebi) == std::vector{met_at(1200 * mebi), early});
  CHECK(threshold.guards());
  CHECK(armed(500 * mebi, 0) == std::vector{met_at(900 * mebi)});
  CHECK(threshold.guards());
  // Beyond it usage says nothing any more: the kernel's word would come too late, or never.
  CHECK(armed(950 * mebi, 300 * mebi) == std::vector{met_at(1200 * mebi)});
  CHECK_FALSE(threshold.guards());
  CHECK(threshold.status().front().rearms == 2);  // the level moved twice

  Arming none;
  threshold.arm(none);
  CHECK_FALSE(threshold.guards());
}

TEST_CASE("a crossing between the node's reading and the registration begins a pass, once") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  if (hierarchy.version() == node::CgroupVersion::v2) return;
  const RealCgroup cgroup{fixture::own_cgroup("-memcg")};
  const Holder holder{cgroup, 16 * mebi};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  const auto wakes_after = [&](std::int64_t read) {
    MemcgThreshold threshold{reactor.get_executor(), wakes, core::Signal::MemoryAvailable, hierarchy, cgroup.path()};
    Arming arming;
    arming.levels.push_back({.signal = core::Signal::MemoryAvailable,
                             .threshold = 100 * mebi,
                             .usage = UsageLevel{.bytes = 8 * mebi, .current = read, .incarnation = 1}});
    threshold.arm(arming);
    arming.levels.back().usage->current = 16 * mebi;
    threshold.arm(arming);
    return threshold.status().front().wakes;
  };
  CHECK(wakes_after(4 * mebi) == 1);
  CHECK(wakes_after(16 * mebi) == 0);  // the pass has seen it
}

TEST_CASE("a crossing that the kernel did not tell of, a cgroup made anew and a failed self-test register anew") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  if (hierarchy.version() == node::CgroupVersion::v2) return;
  const RealCgroup cgroup{fixture::own_cgroup("-memcg")};
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  test::HeardSources heard;
  const auto& said = heard.recoveries;
  wakes.listen(heard);
  MemcgThreshold threshold{reactor.get_executor(), wakes, core::Signal::MemoryAvailable, hierarchy, cgroup.path()};
  core::Instant now = std::chrono::steady_clock::now();
  const auto arm = [&](std::int64_t usage, core::Duration later, std::uint64_t incarnation = 1) {
    Arming arming;
    arming.levels.push_back(level(usage, 0));
    arming.levels.back().usage->incarnation = incarnation;
    arming.time = now += later;
    threshold.arm(arming);
    const auto status = threshold.status().front();
    return std::pair{status.missed, status.re_registrations};
  };
  const auto counts = [](std::uint64_t missed, std::uint64_t anew) { return std::pair{missed, anew}; };
  // The kernel sees no such usage: it has nothing to tell.
  CHECK(arm(500 * mebi, 0s) == counts(0, 0));
  CHECK(arm(500 * mebi, 10s) == counts(0, 0));
  CHECK(arm(910 * mebi, 10s) == counts(0, 0));  // its word may be on its way
  CHECK(arm(910 * mebi, 500ms) == counts(0, 0));
  CHECK(arm(910 * mebi, 500ms) == counts(1, 1));
  CHECK(arm(910 * mebi, 10s) == counts(1, 1));  // known now
  CHECK(arm(500 * mebi, 10s) == counts(1, 1));
  CHECK(arm(910 * mebi, 500ms) == counts(1, 1));  // it was back before the moment was over
  CHECK(arm(500 * mebi, 10s) == counts(1, 1));
  CHECK(arm(500 * mebi, 1s) == counts(2, 2));
  // As near as the kernel's own coarseness it may have been seen on either side.
  CHECK(arm(900 * mebi + 1, 10s) == counts(2, 2));
  CHECK(arm(900 * mebi + 1, 10s) == counts(2, 2));

  CHECK(arm(500 * mebi, 10s, 2) == counts(2, 3));
  threshold.rearm_all();
  CHECK(arm(500 * mebi, 10s, 2) == counts(2, 4));
  CHECK(arm(500 * mebi, 10s, 2) == counts(2, 4));
  CHECK(said ==
        std::vector<std::string>{"registered with the kernel anew: usage crossed a level and the kernel did not tell",
                                 "registered with the kernel anew: usage crossed a level and the kernel did not tell",
                                 "registered with the kernel anew: its cgroup was removed and made anew",
                                 "registered with the kernel anew: a self-test failed"});
}

}  // namespace evictd::wake::memcg_threshold_test
