#include <doctest/doctest.h>

#include "core/synchronizer.hpp"
#include "fixture/guard.hpp"

// The state machine as the agent uses it: passes go on while evictions are under way.

namespace evictd::core::synchronizer_in_flight_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::Guard;
using fixture::Lines;
using fixture::memory_usage;
using fixture::observed;
using fixture::pod;
using fixture::pods;
using fixture::policy;
using fixture::threshold;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

Observations memory(std::int64_t available) { return observed({{MemoryAvailable, available, 8_GiB}}); }

const Lines reads_memory{"read pod usage: memory"};
Lines evicts(const std::string& name) { return {"evict default/" + name + " (memory.available, grace 0s)"}; }

/// A pod whose volume "cache" may hold 1 MiB, and one that has written so much there.
Pod with_limit(const std::string& name) {
  auto limited = pod(name);
  limited.volumes = {fixture::empty_dir("cache", "1Mi")};
  return limited;
}
PodUsage cache_of(std::int64_t bytes) { return {.volumes = {{"cache", {.bytes = bytes}}}}; }

/// Three pods of 3, 2 and 1 GiB under a hard threshold of 2 GiB; the first has just been evicted with nothing
/// available.
struct Crowded {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("big"), pod("middle"), pod("small")})};
  Guard::Usages usage{{"big", memory_usage(3_GiB)}, {"middle", memory_usage(2_GiB)}, {"small", memory_usage(1_GiB)}};

  Crowded() {
    (void)guard.pass(0s, memory(0));
    REQUIRE(guard.measured(usage) == evicts("big"));
  }
};

}  // namespace

TEST_CASE("no second pod goes for the bytes that the first is giving back") {
  Crowded node;
  CHECK(node.guard.pass(10ms, memory(0), {{"big", 3_GiB}}) == Lines{});
  CHECK(node.guard.pass(20ms, memory(1_GiB), {{"big", 2_GiB}}) == Lines{});
  CHECK(node.guard.pass(30ms, memory(1_GiB), {{"big", 1_GiB}}) == Lines{});
}

TEST_CASE("a shortage beyond them takes the next pod at once, and both count then") {
  Crowded node;
  CHECK(node.guard.pass(10ms, memory(500_MiB), {{"big", 1_GiB}}) == reads_memory);
  CHECK(node.guard.measured(node.usage) == evicts("middle"));
  CHECK(node.guard.pass(20ms, memory(500_MiB), {{"big", 1_GiB}, {"middle", 2_GiB}}) == Lines{});
}

TEST_CASE("once a cleanup is over nothing counts any more, and the pod is not chosen again while it is still listed") {
  Crowded node;
  CHECK(node.guard.tell(CleanupEnded{.uid = "big"}) == Lines{});
  CHECK(node.guard.pass(1s, memory(1_GiB)) == reads_memory);
  CHECK(node.guard.measured(node.usage) == evicts("middle"));
}

TEST_CASE("an evicted pod that runs again goes again while memory is short, in flight like any other, and only then") {
  Crowded node;
  (void)node.guard.tell(CleanupEnded{.uid = "big"});
  CHECK(node.guard.tell(PodReturned{"big"}) == Lines{});
  CHECK(node.guard.pass(1s, memory(3_GiB)) == Lines{});
  CHECK(node.guard.pass(2s, memory(1_GiB)) == Lines{"crossed memory.available<2Gi", "read pod usage: memory"});
  CHECK(node.guard.measured(node.usage) == evicts("big"));
  CHECK(node.guard.pass(3s, memory(1_GiB), {{"big", 3_GiB}}) == Lines{});
}

TEST_CASE("what is said of an older list, that a pod runs which is going, changes nothing") {
  Crowded node;
  (void)node.guard.tell(PodReturned{"big"});
  CHECK(node.guard.pass(10ms, memory(0), {{"big", 3_GiB}}) == Lines{});
}

TEST_CASE("a pod whose cleanup timed out may go again, but only when no other is left") {
  Crowded node;
  (void)node.guard.tell(CleanupEnded{.uid = "big", .released = false});
  (void)node.guard.pass(31s, memory(0));
  CHECK(node.guard.measured(node.usage) == evicts("middle"));
  (void)node.guard.tell(CleanupEnded{.uid = "middle", .released = false});
  (void)node.guard.pass(62s, memory(0));
  CHECK(node.guard.measured(node.usage) == evicts("small"));
  (void)node.guard.tell(CleanupEnded{.uid = "small", .released = false});
  (void)node.guard.pass(93s, memory(0));
  CHECK(node.guard.measured(node.usage) == evicts("big"));
}

TEST_CASE("while all pods are going there is no victim left") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({pod("a")})};
  (void)guard.pass(0s, memory(0));
  (void)guard.measured({{"a", memory_usage(1_MiB)}});
  CHECK(guard.pass(10ms, memory(0), {{"a", 1_MiB}}) == reads_memory);
  CHECK(guard.measured({{"a", memory_usage(1_MiB)}}) == Lines{"no victim for memory.available<2Gi"});
}

TEST_CASE(
    "a hard threshold does not wait for a pod that was given time to stop, and takes it at once if it ranks first") {
  auto configured = policy({threshold(MemoryAvailable, "2Gi"), threshold(MemoryAvailable, "4Gi", 1s)});
  configured.max_pod_grace_period = 30s;
  Guard guard{configured, pods({pod("a"), pod("b")})};
  const Guard::Usages usage{{"a", memory_usage(4_GiB)}, {"b", memory_usage(1_GiB)}};
  (void)guard.pass(0s, memory(3_GiB));
  (void)guard.pass(1s, memory(3_GiB));
  CHECK(guard.measured(usage) == Lines{"evict default/a (memory.available, grace 30s)"});
  const Releasing stopping{.uid = "a", .bytes = 4_GiB, .killed = false};
  CHECK(guard.pass(2s, memory(3_GiB), {stopping}) == Lines{});
  CHECK(guard.pass(3s, memory(1_GiB), {stopping}) == Lines{"crossed memory.available<2Gi", "read pod usage: memory"});
  CHECK(guard.measured(usage) == evicts("a"));
  CHECK(guard.pass(4s, memory(1_GiB), {{"a", 4_GiB}}) == Lines{});
}

TEST_CASE("a pod that had time to stop and is dead comes back like any other, and is not evicted again") {
  auto configured = policy(
      {threshold(MemoryAvailable, "2Gi"), threshold(NodefsAvailable, "10Gi"), threshold(NodefsAvailable, "15Gi", 1s)});
  configured.max_pod_grace_period = 30s;
  Guard guard{configured, pods({pod("writer"), pod("other")})};
  const auto disk = [](std::int64_t available) { return observed({{NodefsAvailable, available, 100_GiB}}); };
  (void)guard.pass(0s, disk(14_GiB));
  (void)guard.pass(1s, disk(14_GiB));
  (void)guard.reclaimed(disk(14_GiB));
  REQUIRE(guard.measured({{"writer", fixture::disk_usage(20_GiB)}, {"other", fixture::disk_usage(1_GiB)}}) ==
          Lines{"evict default/writer (nodefs.available, grace 30s)"});

  SUBCASE("its files count for a hard threshold") {
    CHECK(guard.pass(2s, disk(5_GiB), {{"writer", 0, 0}}) == Lines{"crossed nodefs.available<10Gi"});
  }
  SUBCASE("so does what it still holds of memory, beyond which another goes") {
    CHECK(guard.pass(2s, memory(1_GiB), {{"writer", 1_GiB, 1}}) ==
          Lines{"crossed memory.available<2Gi", "conditions [DiskPressure MemoryPressure]"});
    CHECK(guard.pass(3s, memory(1_GiB - 1), {{"writer", 1_GiB, 1}}) == reads_memory);
    CHECK(guard.measured({{"writer", memory_usage(4_GiB)}, {"other", memory_usage(1_GiB)}}) == evicts("other"));
  }
}

TEST_CASE("a minimum reclaim is waited for too, by what is on its way") {
  Guard guard{policy({fixture::with_min_reclaim(threshold(MemoryAvailable, "2Gi"), "1Gi")}),
              pods({pod("a"), pod("b")})};
  const Guard::Usages usage{{"a", memory_usage(2_GiB)}, {"b", memory_usage(1_GiB)}};
  (void)guard.pass(0s, memory(1_GiB));
  CHECK(guard.measured(usage) == evicts("a"));
  CHECK(guard.pass(10ms, memory(1_GiB), {{"a", 2_GiB}}) == Lines{});
  CHECK(guard.pass(20ms, memory(2500_MiB), {{"a", 500_MiB}}) == reads_memory);
}

TEST_CASE("a pod evicted for one disk signal is not followed by another for the same disk") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi"), threshold(ImagefsAvailable, "15Gi")}),
              pods({pod("a"), pod("b")})};
  const auto low = observed(
      {{NodefsAvailable, 1_GiB, 100_GiB}, {ImagefsAvailable, 1_GiB, 100_GiB}, {ContainerfsAvailable, 1_GiB, 100_GiB}});
  (void)guard.pass(0s, low);
  (void)guard.reclaimed(low);
  CHECK(guard.measured({{"a", fixture::disk_usage(50_GiB)}, {"b", fixture::disk_usage(1_GiB)}}) ==
        Lines{"evict default/a (nodefs.available, grace 0s)"});
  CHECK(guard.pass(1s, low) == Lines{"crossed containerfs.available<10Gi"});
}

TEST_CASE("a pod that holds next to nothing of the disk does not go while what the writer held is still to come back") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi")}), pods({pod("writer"), pod("sleeper"), pod("second")})};
  const auto low = [](std::int64_t available) { return observed({{NodefsAvailable, available, 100_GiB}}); };
  (void)guard.pass(0s, low(1_GiB));
  (void)guard.reclaimed(low(1_GiB));
  // It wrote on since it was measured: what it is known to give back does not suffice.
  CHECK(guard.measured(
            {{"writer", fixture::disk_usage(8_GiB)}, {"sleeper", fixture::disk_usage(8_MiB)}, {"second", {}}}) ==
        Lines{"evict default/writer (nodefs.available, grace 0s)"});
  (void)guard.pass(1s, low(500_MiB));
  (void)guard.reclaimed(low(500_MiB));
  const auto rest = [](std::int64_t of_second) {
    return Guard::Usages{{"sleeper", fixture::disk_usage(8_MiB)}, {"second", fixture::disk_usage(of_second)}};
  };
  CHECK(guard.measured(rest(4_MiB)) == Lines{});

  SUBCASE("one that holds more does, at once") {
    (void)guard.pass(2s, low(500_MiB));
    (void)guard.reclaimed(low(500_MiB));
    CHECK(guard.measured(rest(2_GiB)) == Lines{"evict default/second (nodefs.available, grace 0s)"});
  }
  SUBCASE("once nothing is on its way any more the small ones go, too") {
    (void)guard.tell(CleanupEnded{"writer"});
    (void)guard.pass(2s, low(9_GiB));
    (void)guard.reclaimed(low(9_GiB));
    CHECK(guard.measured(rest(4_MiB)) == Lines{"evict default/sleeper (nodefs.available, grace 0s)"});
  }
}

TEST_CASE("a pod that a silent disk keeps from being measured is not ranked, and so not before the others") {
  Guard guard{policy({threshold(ImagefsAvailable, "10Gi")}), pods({pod("hung"), pod("writer")})};
  const auto low = observed({{ImagefsAvailable, 1_GiB, 100_GiB}});
  (void)guard.pass(0s, low);
  (void)guard.reclaimed(low);
  CHECK(guard.answer(guard.waiting(), PodsMeasured{.usage = {std::nullopt, fixture::disk_usage(1_GiB)},
                                                   .out_of_reach = {true, false}}) ==
        Lines{"evict default/writer (imagefs.available, grace 0s)"});
}

TEST_CASE("while a disk is measured a pod goes for its own limit: nobody else goes for the same shortage") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi")}), pods({with_limit("greedy"), pod("b")})};
  const auto low = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  (void)guard.pass(0s, low);
  (void)guard.measured({});
  (void)guard.reclaimed(low);
  const auto disk = guard.waiting();
  REQUIRE(guard.reading().measure == Measure::Disk);

  (void)guard.pass(1s, low);
  REQUIRE(guard.measured({{"greedy", cache_of(9_GiB)}}) == Lines{"evict default/greedy (emptydirfs.limit, grace 0s)"});
  CHECK(guard.answer(disk, PodsMeasured{.usage = {cache_of(9_GiB), fixture::disk_usage(2_GiB)}, .fresh = low}) ==
        Lines{});
  (void)guard.pass(1s, low);
  CHECK(guard.measured({{"greedy", cache_of(9_GiB)}}) == Lines{});
  // Once it has gone and that was not enough, the next one does.
  (void)guard.tell(CleanupEnded{"greedy"});
  guard.set_pods(pods({pod("b")}));
  CHECK(guard.pass(2s, low) == Lines{"reclaim node: containers images"});
}

TEST_CASE("a pod that goes for its own limit tells by what it shows that its disk has it back") {
  Guard guard{policy({}), pods({with_limit("greedy")})};
  const auto release = [&] {
    for (const auto& action : guard.actions())
      if (const auto* eviction = std::get_if<Eviction>(&action)) return eviction->disk_release;
    return std::optional{DiskRelease{}};
  };
  SUBCASE("the disk was read") {
    (void)guard.pass(0s, observed({{MemoryAvailable, 8_GiB, 8_GiB}, {NodefsAvailable, 5_GiB, 100_GiB}}));
    (void)guard.measured({{"greedy", cache_of(9_GiB)}});
    CHECK(release() == DiskRelease{NodefsAvailable, 9_GiB, 5_GiB});
  }
  SUBCASE("it was not") {
    (void)guard.pass(0s, memory(8_GiB));
    (void)guard.measured({{"greedy", cache_of(9_GiB)}});
    CHECK(release() == std::nullopt);
  }
}

TEST_CASE("a pod that goes for its own limit is not evicted for it again") {
  Guard guard{policy({}), pods({with_limit("greedy")})};
  (void)guard.pass(0s, memory(8_GiB));
  CHECK(guard.measured({{"greedy", cache_of(2_MiB)}}) == Lines{"evict default/greedy (emptydirfs.limit, grace 0s)"});
  (void)guard.pass(1s, memory(8_GiB));
  CHECK(guard.measured({{"greedy", cache_of(2_MiB)}}) == Lines{});
}

TEST_CASE("pods that hold little and go for limits of their own keep nobody who fills the disk from going") {
  Guard guard{policy({threshold(NodefsAvailable, "10Gi"), threshold(NodefsInodesFree, "100k")}),
              pods({with_limit("greedy"), pod("writer"), pod("sleeper")})};
  const auto usages = [](std::int64_t of_writer) {
    return Guard::Usages{{"greedy", cache_of(2_MiB)},
                         {"writer", fixture::disk_usage(of_writer)},
                         {"sleeper", fixture::disk_usage(8_MiB)}};
  };
  const auto low = observed({{NodefsAvailable, 1_GiB, 100_GiB}});
  (void)guard.pass(0s, low);
  REQUIRE(guard.measured(usages(8_GiB)) == Lines{"evict default/greedy (emptydirfs.limit, grace 0s)"});

  SUBCASE("of bytes") {
    (void)guard.pass(1s, low);
    REQUIRE(guard.measured(usages(8_GiB)) == Lines{"reclaim node: containers images"});
    (void)guard.reclaimed(low);
    CHECK(guard.measured(usages(8_GiB)) == Lines{"evict default/writer (nodefs.available, grace 0s)"});
  }
  SUBCASE("of bytes, if only little is left to be had") {
    (void)guard.pass(1s, low);
    (void)guard.measured(usages(9_MiB));
    (void)guard.reclaimed(low);
    CHECK(guard.measured(usages(9_MiB)) == Lines{"evict default/writer (nodefs.available, grace 0s)"});
  }
  SUBCASE("of inodes") {
    const auto few = observed({{NodefsInodesFree, 50, 1'000'000}});
    (void)guard.pass(1s, few);
    REQUIRE(guard.measured(usages(0)) == Lines{"reclaim node: containers images"});
    (void)guard.reclaimed(few);
    auto files = usages(0);
    files["writer"].containers.front().rootfs.inodes = 500'000;
    CHECK(guard.measured(files) == Lines{"evict default/writer (nodefs.inodesFree, grace 0s)"});
  }
}

TEST_CASE("while a fork bomb dies for the memory it holds nobody else goes for its processes, but for those beyond") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi"), threshold(PidAvailable, "2k")}),
              pods({pod("bomb"), pod("other")})};
  const auto both = [](std::int64_t bytes, std::int64_t pids) {
    return observed({{MemoryAvailable, bytes, 8_GiB}, {PidAvailable, pids, 32'768}});
  };
  const Guard::Usages usage{{"bomb", {.working_set = 3_GiB, .processes = 30'000}},
                            {"other", {.working_set = 1_GiB, .processes = 3}}};
  (void)guard.pass(0s, both(0, 100));
  REQUIRE(guard.measured(usage) == evicts("bomb"));
  CHECK(guard.pass(10ms, both(0, 100), {{"bomb", 3_GiB, 30'000}}) == Lines{});
  CHECK(guard.pass(1s, both(2_GiB, 1'500), {{"bomb", 1_GiB, 28'600}}) == Lines{});

  SUBCASE("it has few left") {
    CHECK(guard.pass(2s, both(2_GiB, 1'500), {{"bomb", 1_GiB, 499}}) == Lines{"read pod usage: processes"});
    CHECK(guard.measured(usage) == Lines{"evict default/other (pid.available, grace 0s)"});
  }
  SUBCASE("it is held, and runs on") {
    (void)guard.tell(PodHeld{"bomb"});
    (void)guard.pass(2s, both(2_GiB, 1'500), {{"bomb", 1_GiB, 28'600}});
    CHECK(guard.measured(usage) == Lines{"evict default/bomb (pid.available, grace 0s)"});
    CHECK(guard.pass(3s, both(0, 1'500), {{"bomb", 3_GiB, 28'600}}) == Lines{"crossed memory.available<2Gi"});
  }
  SUBCASE("its cleanup is over") {
    (void)guard.tell(CleanupEnded{"bomb"});
    CHECK(guard.pass(2s, both(3_GiB, 1'500)) == Lines{"read pod usage: processes"});
  }
}

TEST_CASE("what a pod still holds of memory counts whatever it is killed for, and none that it was given time for") {
  auto configured = policy({threshold(MemoryAvailable, "2Gi"), threshold(PidAvailable, "2k")});
  auto bomb = with_limit("bomb");
  Guard::Usages usage{{"bomb", {.working_set = 3_GiB, .processes = 30'000}},
                      {"other", {.working_set = 1_GiB, .processes = 3}}};
  const auto both = [](std::int64_t bytes, std::int64_t pids) {
    return observed({{MemoryAvailable, bytes, 8_GiB}, {PidAvailable, pids, 32'768}});
  };
  const Lines crossed{"crossed memory.available<2Gi", "conditions [MemoryPressure PIDPressure]"};

  SUBCASE("process ids") {
    Guard guard{configured, pods({pod("bomb"), pod("other")})};
    (void)guard.pass(0s, both(3_GiB, 100));
    REQUIRE(guard.measured(usage) == Lines{"evict default/bomb (pid.available, grace 0s)"});
    SUBCASE("it is not killed yet") {
      CHECK(guard.pass(1s, both(1_GiB, 100), {{"bomb", 3_GiB, 30'000, false}}) ==
            Lines{crossed[0], crossed[1], "read pod usage: memory"});
      return;
    }
    CHECK(guard.pass(1s, both(1_GiB, 100), {{"bomb", 3_GiB, 30'000}}) == crossed);
    CHECK(guard.pass(2s, both(1_GiB, 25'000), {{"bomb", 1_GiB - 1, 5'000}}) == reads_memory);
    CHECK(guard.measured(usage) == evicts("other"));
  }
  SUBCASE("a limit of its own") {
    Guard guard{configured, pods({bomb, pod("other")})};
    usage["bomb"].volumes = {{"cache", {.bytes = 2_MiB}}};
    (void)guard.pass(0s, both(3_GiB, 25'000));
    REQUIRE(guard.measured(usage) == Lines{"evict default/bomb (emptydirfs.limit, grace 0s)"});
    (void)guard.pass(1s, both(1_GiB, 25'000), {{"bomb", 3_GiB, 30'000}});
    CHECK(guard.measured(usage) == Lines{});
    (void)guard.pass(2s, both(1_GiB, 25'000), {{"bomb", 0, 1}});  // its volumes are still to be removed
    CHECK(guard.measured(usage) == reads_memory);
  }
  SUBCASE("process ids, with time to stop") {
    configured.thresholds.back().grace = 1s;
    configured.max_pod_grace_period = 30s;
    Guard guard{configured, pods({pod("bomb"), pod("other")})};
    (void)guard.pass(0s, both(3_GiB, 100));
    (void)guard.pass(1s, both(3_GiB, 100));
    REQUIRE(guard.measured(usage) == Lines{"evict default/bomb (pid.available, grace 30s)"});
    CHECK(guard.pass(2s, both(1_GiB, 100), {{"bomb", 3_GiB, 30'000, false}}) ==
          Lines{crossed[0], crossed[1], "read pod usage: memory"});
  }
}

TEST_CASE("while a disk is measured the pod that fills it goes for memory: nobody goes for what that brings") {
  Guard guard{policy({threshold(MemoryAvailable, "2Gi"), threshold(NodefsAvailable, "10Gi")}),
              pods({pod("server"), pod("other")})};
  const auto both = [](std::int64_t bytes) {
    return observed({{MemoryAvailable, bytes, 8_GiB}, {NodefsAvailable, 1_GiB, 100_GiB}});
  };
  (void)guard.pass(0s, both(4_GiB));
  (void)guard.reclaimed(both(4_GiB));
  const auto disk = guard.waiting();
  (void)guard.pass(1s, both(0));
  REQUIRE(guard.measured({{"server", memory_usage(6_GiB)}, {"other", memory_usage(1_GiB)}}) == evicts("server"));
  const auto measured = [&](std::int64_t of_server) {
    return PodsMeasured{.usage = {fixture::disk_usage(of_server), fixture::disk_usage(2_GiB)}, .fresh = both(0)};
  };
  const Lines takes_other{"evict default/other (nodefs.available, grace 0s)"};

  SUBCASE("it brings enough, and is waited for until it has gone") {
    CHECK(guard.answer(disk, measured(9_GiB)) == Lines{});
    CHECK(guard.pass(2s, both(1_GiB), {{"server", 5_GiB}}) == Lines{});
    (void)guard.tell(CleanupEnded{"server"});
    CHECK(guard.pass(3s, both(4_GiB)) == Lines{"reclaim node: containers images"});
  }
  SUBCASE("what is short beyond it takes the next one") { CHECK(guard.answer(disk, measured(8_GiB)) == takes_other); }
  SUBCASE("it has time to end, and writes on") {
    (void)guard.tell(PodHeld{"server"});
    CHECK(guard.answer(disk, measured(9_GiB)) == Lines{"evict default/server (nodefs.available, grace 0s)"});
  }
}

}  // namespace evictd::core::synchronizer_in_flight_test
