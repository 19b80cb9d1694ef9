#include "core/synchronizer.hpp"

#include <doctest/doctest.h>

#include "fixture/guard.hpp"

namespace evictd::core::synchronizer_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::container;
using fixture::Guard;
using fixture::Lines;
using fixture::memory_usage;
using fixture::observed;
using fixture::pod;
using fixture::pods;
using fixture::policy;
using fixture::threshold;
using fixture::with_min_reclaim;
using fixture::with_priority;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

const auto hard_memory = threshold(MemoryAvailable, "1Gi");

Observations memory(std::int64_t available) { return observed({{MemoryAvailable, available, 4_GiB}}); }
Observations nodefs(std::int64_t available) { return observed({{NodefsAvailable, available, 100_GiB}}); }

/// As the kubelet does it: nothing counts as in flight.
Guard kubelet(EvictionPolicy policy, PodList list) {
  return {std::move(policy), std::move(list), {.in_flight_reclaim = false}};
}

const Eviction& evicted(const Guard& guard) {
  for (const auto& action : guard.actions())
    if (const auto* evict = std::get_if<Eviction>(&action)) return *evict;
  throw std::runtime_error("nobody was evicted");
}

Pod with_limit(std::string name, const char* limit) {
  return pod(std::move(name), {container("main", {}, {{"ephemeral-storage", limit}})});
}

PodUsage ephemeral(std::int64_t bytes) {
  PodUsage usage;
  usage.ephemeral = bytes;
  return usage;
}

}  // namespace

TEST_CASE("a node that is well asks for nothing") {
  auto guard = kubelet(policy({hard_memory}), pods({pod("a")}));
  CHECK(guard.pass(0s, memory(1_GiB)) == Lines{});
}

TEST_CASE("a crossed hard threshold is reported, then the pods' memory is asked for, then one pod goes at once") {
  auto guard = kubelet(policy({hard_memory}), pods({pod("a"), pod("b"), pod("c")}));
  CHECK(guard.pass(0s, memory(1_GiB - 1)) ==
        Lines{"crossed memory.available<1Gi", "conditions [MemoryPressure]", "read pod usage: memory"});
  CHECK(guard.measured({{"a", memory_usage(1_MiB)}, {"b", memory_usage(2_MiB)}, {"c", memory_usage(0)}}) ==
        Lines{"evict default/b (memory.available, grace 0s)"});
  const auto& evict = evicted(guard);
  CHECK(evict.message.text.starts_with("The node was low on resource: memory. Threshold quantity: 1Gi, available: "));
  CHECK(evict.acted->threshold == hard_memory);
  CHECK(evict.acted->observation.available == 1_GiB - 1);
  CHECK(evict.expected_release == 2_MiB);
  REQUIRE(evict.ranking.size() == 3);
  CHECK(evict.ranking[2].pod->name == "c");
}

TEST_CASE("a soft threshold evicts only once its grace period is over, and recovery resets it") {
  auto guard = kubelet(policy({threshold(MemoryAvailable, "2Gi", 2min)}), pods({pod("a")}));
  CHECK(guard.pass(0min, memory(1500_MiB)) ==
        Lines{"crossed memory.available<2Gi for 2m0s", "conditions [MemoryPressure]"});
  CHECK(guard.pass(1min, memory(3_GiB)) == Lines{});
  CHECK(guard.pass(2min, memory(1500_MiB)) == Lines{"crossed memory.available<2Gi for 2m0s"});
  CHECK(guard.pass(3min, memory(1500_MiB)) == Lines{});
  CHECK(guard.pass(4min, memory(1500_MiB)) == Lines{"read pod usage: memory"});
  CHECK(guard.measured({}) == Lines{"evict default/a (memory.available, grace 1s)"});
}

TEST_CASE("the condition ends with the transition period, and a pass is asked for at that time") {
  auto guard = kubelet(policy({hard_memory}), {});
  (void)guard.pass(0min, memory(0));
  CHECK(guard.pass(1min, memory(4_GiB)) == Lines{});
  CHECK(guard.everything() == Lines{"wake at 5m0s"});
  CHECK(guard.pass(5min, memory(4_GiB)) == Lines{"conditions []"});
  CHECK(guard.everything() == Lines{"conditions []", "wake at no time"});
  CHECK(guard.pass(6min, memory(4_GiB)) == Lines{});
  CHECK(guard.everything() == Lines{});
}

TEST_CASE("the levels of all thresholds with an observation are armed, again only when they change") {
  auto guard = kubelet(policy({hard_memory, threshold(MemoryAvailable, "2Gi", 1min),
                               threshold(NodefsAvailable, fixture::share(50)), threshold(PidAvailable, "100")}),
                       {});
  (void)guard.pass(0s, observed({{MemoryAvailable, 4_GiB, 4_GiB}, {NodefsAvailable, 1000, 1000}}));
  CHECK(guard.everything() ==
        Lines{"arm memory.available<1073741824 memory.available<2147483648 nodefs.available<500"});
  (void)guard.pass(1s, observed({{MemoryAvailable, 3_GiB, 4_GiB}, {NodefsAvailable, 900, 1000}}));
  CHECK(guard.everything() == Lines{});
  (void)guard.pass(2s, observed({{NodefsAvailable, 1900, 2000}, {ContainerfsAvailable, 1900, 2000}}));
  CHECK(guard.everything() == Lines{"arm nodefs.available<1000 containerfs.available<1000"});
}

TEST_CASE(
    "soft evictions are given the configured maximum, or the pod's own grace period where that is shorter, and a "
    "second at least") {
  const auto grace = [](Duration maximum, std::optional<std::int64_t> own) {
    auto soft = policy({threshold(MemoryAvailable, "2Gi", 1s)});
    soft.max_pod_grace_period = maximum;
    auto victim = pod("a");
    victim.termination_grace_period_seconds = own;
    auto guard = kubelet(soft, pods({victim}));
    (void)guard.pass(0s, memory(0));
    (void)guard.pass(1s, memory(0));
    (void)guard.measured({});
    return evicted(guard).grace_period;
  };
  CHECK(grace(10s, 30) == 10s);
  CHECK(grace(10s, 5) == 5s);
  CHECK(grace(10s, std::nullopt) == 10s);
  CHECK(grace(10s, 0) == 1s);
  for (const auto maximum : {0s, -1s}) {
    CHECK(grace(maximum, 40) == 1s);
    CHECK(grace(maximum, std::nullopt) == 1s);
  }
}

TEST_CASE("critical pods are passed over; where all are critical nobody goes") {
  auto guard = kubelet(policy({hard_memory}), pods({with_priority(pod("vital"), 2'000'000'000), pod("a")}));
  (void)guard.pass(0s, memory(0));
  CHECK(guard.measured({{"vital", memory_usage(9_GiB)}, {"a", memory_usage(1)}}) ==
        Lines{"evict default/a (memory.available, grace 0s)"});
  guard.set_pods(pods({with_priority(pod("vital"), 2'000'000'000)}));
  (void)guard.pass(10s, memory(0));
  CHECK(guard.measured({}) == Lines{"no victim for memory.available<1Gi"});
}

TEST_CASE("a pod of which nothing runs and which holds nothing does not go; where there is no other nobody does") {
  auto low = pod("dead");
  low.priority = -10;
  Guard guard{policy({threshold(MemoryAvailable, "2Gi")}), pods({low, pod("hog")})};
  const PodUsage bare{.working_set = 0, .runs = false};
  const PodUsage holding{.working_set = 3_MiB, .runs = false};
  (void)guard.pass(0s, memory(1_GiB));
  CHECK(guard.measured({{"dead", bare}, {"hog", memory_usage(0)}}) ==
        Lines{"evict default/hog (memory.available, grace 0s)"});
  (void)guard.tell(CleanupEnded{"hog"});
  guard.set_pods(pods({low}));
  for (const auto at : {1s, 2s}) {
    (void)guard.pass(at, memory(1_GiB));
    CHECK(guard.measured({{"dead", bare}}) == Lines{"no victim for memory.available<2Gi"});
  }
  (void)guard.pass(3s, memory(1_GiB));
  CHECK(guard.measured({{"dead", holding}}) ==
        Lines{"evict default/dead (memory.available, grace 0s)"});  // its volumes hold memory
}

TEST_CASE("without any pod there is nothing to ask for") {
  auto guard = kubelet(policy({hard_memory}), {});
  CHECK(guard.pass(0s, memory(0)) == Lines{"crossed memory.available<1Gi", "conditions [MemoryPressure]"});
}

TEST_CASE("of several thresholds memory acts first; a hard one before a soft one whose time has come") {
  auto guard = kubelet(policy({threshold(MemoryAvailable, "2Gi", 1s), hard_memory, threshold(PidAvailable, "100")}),
                       pods({pod("a")}));
  const auto both = observed({{MemoryAvailable, 0, 4_GiB}, {PidAvailable, 0, 1000}});
  (void)guard.pass(0s, both);
  CHECK(guard.pass(1s, both) == Lines{"read pod usage: memory"});
  (void)guard.measured({});
  CHECK(evicted(guard).acted->threshold == hard_memory);
}

TEST_CASE("each kind of signal asks for the numbers it ranks by") {
  for (const auto& [signal, reading] :
       {std::pair{AllocatableMemoryAvailable, "read pod usage: memory"}, {PidAvailable, "read pod usage: processes"}}) {
    auto guard = kubelet(policy({threshold(signal, "100")}), pods({pod("a")}));
    CHECK(guard.pass(0s, observed({{signal, 0, 1000}})).back() == reading);
  }
}

TEST_CASE("before a pod goes for disk, the node gives up what nobody uses") {
  auto guard = kubelet(policy({threshold(NodefsAvailable, "10Gi")}), pods({pod("a")}));
  CHECK(guard.pass(0s, nodefs(1_GiB)).back() == "reclaim node: containers images");
  CHECK(guard.reclaimed(nodefs(1_GiB)) == Lines{"read pod usage: disk"});
  CHECK(guard.measured({{"a", fixture::disk_usage(5)}}) == Lines{"evict default/a (nodefs.available, grace 0s)"});
}

TEST_CASE("when that suffices nobody goes") {
  auto guard = kubelet(policy({threshold(NodefsAvailable, "10Gi")}), pods({pod("a")}));
  (void)guard.pass(0s, nodefs(1_GiB));
  CHECK(guard.reclaimed(nodefs(10_GiB)) == Lines{});
}

TEST_CASE("it suffices only if no threshold at all is met, with every minimum reclaim and whatever the grace period") {
  auto guard = kubelet(
      policy({with_min_reclaim(threshold(NodefsAvailable, "10Gi"), "5Gi"), threshold(MemoryAvailable, "2Gi", 1h)}),
      pods({pod("a")}));
  (void)guard.pass(0s, nodefs(1_GiB));
  CHECK(guard.reclaimed(nodefs(15_GiB - 1)) == Lines{"read pod usage: disk"});
  CHECK(guard.measured({}).size() == 1);
  (void)guard.pass(10s, nodefs(1_GiB));
  CHECK(guard.reclaimed(nodefs(15_GiB)) == Lines{});
  (void)guard.pass(20s, nodefs(1_GiB));
  CHECK(guard.reclaimed(observed({{NodefsAvailable, 50_GiB, 100_GiB}, {MemoryAvailable, 1_GiB, 4_GiB}})) ==
        Lines{"read pod usage: disk"});
}

TEST_CASE("reclaim runs even where there is no pod to evict") {
  auto guard = kubelet(policy({threshold(NodefsAvailable, "10Gi")}), {});
  CHECK(guard.pass(0s, nodefs(1_GiB)).back() == "reclaim node: containers images");
  CHECK(guard.reclaimed(nodefs(1_GiB)) == Lines{});
}

TEST_CASE("what the node may give up depends on the signal and on where images and layers lie") {
  constexpr FilesystemLayout single{};
  constexpr FilesystemLayout dedicated{.dedicated_imagefs = true};
  constexpr FilesystemLayout split{.dedicated_imagefs = true, .split = true};
  const auto reclaim = [](Signal signal, FilesystemLayout layout) {
    std::vector thresholds{threshold(signal, "100")};
    // One that is given has the place of what is derived from these.
    if (signal == ContainerfsAvailable)
      thresholds.insert(thresholds.end(), {threshold(NodefsAvailable, "100"), threshold(ImagefsAvailable, "100")});
    if (signal == ContainerfsInodesFree)
      thresholds.insert(thresholds.end(), {threshold(NodefsInodesFree, "100"), threshold(ImagefsInodesFree, "100")});
    auto guard = kubelet(policy(std::move(thresholds)), pods({pod("a")}));
    (void)guard.tell(LayoutDetected{layout});
    return guard.pass(0s, observed({{signal, 0, 1000}})).back();
  };
  for (const auto signal : {NodefsAvailable, NodefsInodesFree}) {
    CHECK(reclaim(signal, single) == "reclaim node: containers images");
    CHECK(reclaim(signal, dedicated) == "read pod usage: disk");
    CHECK(reclaim(signal, split) == "reclaim node: containers");
  }
  for (const auto signal : {ImagefsAvailable, ImagefsInodesFree}) {
    CHECK(reclaim(signal, single) == "reclaim node: containers images");
    CHECK(reclaim(signal, dedicated) == "reclaim node: containers images");
    CHECK(reclaim(signal, split) == "reclaim node: images");
  }
  for (const auto signal : {ContainerfsAvailable, ContainerfsInodesFree}) {
    CHECK(reclaim(signal, single) == "reclaim node: containers images");
    CHECK(reclaim(signal, dedicated) == "reclaim node: containers images");
    CHECK(reclaim(signal, split) == "reclaim node: containers");
  }
  for (const auto layout : {single, dedicated, split}) {
    CHECK(reclaim(MemoryAvailable, layout) == "read pod usage: memory");
    CHECK(reclaim(AllocatableMemoryAvailable, layout) == "read pod usage: memory");
    CHECK(reclaim(PidAvailable, layout) == "read pod usage: processes");
  }
}

TEST_CASE("until it is known whether images have a disk of their own no disk decides anything, and memory goes on") {
  const auto short_of = [](std::int64_t available_memory) {
    return observed({{NodefsAvailable, 1_GiB, 100_GiB}, {MemoryAvailable, available_memory, 4_GiB}});
  };
  Guard guard{policy({hard_memory, threshold(NodefsAvailable, "10Gi")}),
              pods({pod("a"), with_limit("greedy", "1Mi")}),
              {.in_flight_reclaim = false},
              std::nullopt};
  CHECK_FALSE(guard.synchronizer().knows_layout());
  CHECK(guard.pass(0s, short_of(4_GiB)) == Lines{"crossed nodefs.available<10Gi", "conditions [DiskPressure]"});
  CHECK(guard.pass(10s, short_of(512_MiB)).back() == "read pod usage: memory");

  (void)guard.tell(LayoutDetected{});
  CHECK(guard.synchronizer().knows_layout());
  CHECK(guard.pass(20s, short_of(4_GiB)).back() == "read pod usage: local storage limits");
  CHECK(guard.measured({}).back() == "reclaim node: containers images");
}

TEST_CASE("a layout that is not known does not become so by a restart, and one that is stays so") {
  for (const bool known : {true, false}) {
    CAPTURE(known);
    Synchronizer before{policy({hard_memory})};
    if (known) (void)before.tell(LayoutDetected{{.dedicated_imagefs = true}}, {});
    Synchronizer after{policy({hard_memory})};
    after.restore(before.state(), {});
    CHECK(after.knows_layout() == known);
    CHECK(after.state().layout.dedicated_imagefs == known);
  }
}

TEST_CASE(
    "containerfs thresholds given by the operator never act: the first pass has the derived ones in their place") {
  auto guard =
      kubelet(policy({threshold(NodefsAvailable, "10Gi"), threshold(ContainerfsAvailable, "50Gi")}), pods({pod("a")}));
  const auto node = observed({{NodefsAvailable, 90_GiB, 100_GiB}, {ContainerfsAvailable, 40_GiB, 100_GiB}});
  CHECK(guard.pass(0s, node) == Lines{});
  CHECK(guard.synchronizer().thresholds().back() == Threshold{.signal = ContainerfsAvailable,
                                                              .value = fixture::amount("10Gi"),
                                                              .source = ThresholdSource::Derived});
  CHECK(guard.pass(10s, node) == Lines{});
}

TEST_CASE("a derived containerfs threshold acts in the first pass where one was given, else from the second on") {
  const auto low = observed({{NodefsAvailable, 90_GiB, 100_GiB}, {ContainerfsAvailable, 5_GiB, 100_GiB}});
  for (const bool given : {true, false}) {
    CAPTURE(given);
    auto configured = policy({threshold(NodefsAvailable, "10Gi")});
    if (given) configured.thresholds.push_back(threshold(ContainerfsAvailable, "1Gi"));
    auto guard = kubelet(configured, pods({pod("a")}));
    const Lines acts{"crossed containerfs.available<10Gi", "conditions [DiskPressure]",
                     "reclaim node: containers images"};
    CHECK(guard.pass(0s, low) == (given ? acts : Lines{}));
    if (!given) CHECK(guard.pass(10s, low) == acts);
  }
}

TEST_CASE("a changed layout derives anew") {
  auto guard = kubelet(policy({threshold(NodefsAvailable, "10Gi"), threshold(ImagefsAvailable, "20Gi")}), {});
  (void)guard.pass(0s, observed({}));
  CHECK(to_string(guard.synchronizer().thresholds().back()) == "containerfs.available<10Gi");
  (void)guard.tell(LayoutDetected{{.dedicated_imagefs = true}});
  CHECK(to_string(guard.synchronizer().thresholds().back()) == "containerfs.available<20Gi");
}

TEST_CASE("a containerfs threshold that a changed layout replaced acts no more, nor does a pass that waits for it") {
  const auto low = observed({{ContainerfsAvailable, 15_GiB, 100_GiB}});
  for (const bool waits : {true, false}) {
    auto guard =
        kubelet(policy({threshold(NodefsAvailable, "20Gi"), threshold(ImagefsAvailable, "10Gi")}), pods({pod("a")}));
    (void)guard.pass(0s, observed({}));
    CHECK(guard.pass(1s, low).back() == "reclaim node: containers images");
    if (!waits) CHECK(guard.reclaimed(observed({})) == Lines{});
    (void)guard.tell(LayoutDetected{{.dedicated_imagefs = true}});
    if (waits) CHECK(guard.reclaimed(low) == Lines{});
    CHECK(guard.pass(2s, low) == Lines{});
  }
}

TEST_CASE("pods beyond a limit of their own go all in one pass, before any threshold acts") {
  auto guard = kubelet(policy({hard_memory}),
                       pods({with_limit("a", "1Mi"), pod("b"), with_limit("c", "1Mi"), with_limit("d", "1Gi")}));
  CHECK(guard.pass(0s, memory(0)).back() == "read pod usage: local storage limits");
  CHECK(guard.measured(
            {{"a", ephemeral(2_MiB)}, {"b", ephemeral(9_GiB)}, {"c", ephemeral(2_MiB)}, {"d", ephemeral(2_MiB)}}) ==
        Lines{"evict default/a (ephemeralpodfs.limit, grace 0s)", "evict default/c (ephemeralpodfs.limit, grace 0s)"});
  CHECK(evicted(guard).message.annotations.empty());
  CHECK_FALSE(evicted(guard).acted.has_value());
}

TEST_CASE("a pod that went for its own limit does not go for it again while the runtime cannot remove what it wrote") {
  Guard guard{policy({}), pods({with_limit("a", "1Mi")})};
  (void)guard.pass(0s, memory(4_GiB));
  REQUIRE(guard.measured({{"a", ephemeral(2_MiB)}}) == Lines{"evict default/a (ephemeralpodfs.limit, grace 0s)"});
  CleanupEnded ended{.uid = "a", .released = false};
  Lines again;
  SUBCASE("it is dead") {}
  SUBCASE("nothing of it could be killed") {
    ended.killed = false;
    again = {"evict default/a (ephemeralpodfs.limit, grace 0s)"};
  }
  (void)guard.tell(ended);
  SUBCASE("it runs again") {
    (void)guard.tell(PodReturned{"a"});
    again = {"evict default/a (ephemeralpodfs.limit, grace 0s)"};
  }
  (void)guard.pass(36s, memory(4_GiB));
  CHECK(guard.measured({{"a", ephemeral(2_MiB)}}) == again);
}

TEST_CASE("where no pod is beyond its limits the thresholds act in the same pass") {
  auto guard = kubelet(policy({hard_memory}), pods({with_limit("a", "1Gi")}));
  (void)guard.pass(0s, memory(0));
  CHECK(guard.measured({{"a", ephemeral(2_MiB)}}) == Lines{"read pod usage: memory"});
  CHECK(guard.measured({}) == Lines{"evict default/a (memory.available, grace 0s)"});
}

TEST_CASE("limits are looked at without any pressure, but not with isolation off, nor for a pod without stats") {
  auto guard = kubelet(policy({}), pods({with_limit("a", "1Mi")}));
  CHECK(guard.pass(0s, memory(4_GiB)) == Lines{"read pod usage: local storage limits"});
  CHECK(guard.measured({}) == Lines{});

  auto off = policy({hard_memory});
  off.local_storage_isolation = false;
  auto lenient = kubelet(off, pods({with_limit("a", "1Mi")}));
  CHECK(lenient.pass(0s, memory(0)).back() == "read pod usage: memory");
}

TEST_CASE("numbers that a pass used up for limits do not act again") {
  auto guard = kubelet(policy({hard_memory}), pods({with_limit("a", "1Mi"), pod("b")}));
  const auto stale = observed({{MemoryAvailable, 0, 4_GiB, 5s}});
  (void)guard.pass(10s, stale);
  CHECK(guard.measured({{"a", ephemeral(2_MiB)}}).size() == 1);
  guard.set_pods(pods({pod("b")}));
  CHECK(guard.pass(20s, stale) == Lines{});
}

TEST_CASE("an answer to an older pass is ignored") {
  auto guard = kubelet(policy({hard_memory}), pods({pod("a")}));
  (void)guard.pass(0s, memory(0));
  const auto old = guard.waiting();
  (void)guard.pass(1s, memory(0));
  REQUIRE(guard.waiting() != old);
  CHECK(guard.answer(old, PodsMeasured{.usage = {memory_usage(1)}}) == Lines{});
  CHECK(guard.measured({}).size() == 1);
  CHECK(guard.measured({}) == Lines{});  // nor is one that was given already
}

TEST_CASE("nobody goes if the shortage is over by the time the pods are measured") {
  auto guard = kubelet(policy({hard_memory}), pods({pod("a")}));
  (void)guard.pass(0s, memory(0));
  CHECK(guard.measured({}, memory(1_GiB)) == Lines{"recovered: memory.available<1Gi"});
  (void)guard.pass(1s, memory(0));
  CHECK(guard.measured({}, memory(1_GiB - 1)) == Lines{"evict default/a (memory.available, grace 0s)"});
}

TEST_CASE("a shortage of which nobody can say whether it is over evicts nobody, and is not said to be over") {
  auto guard = kubelet(policy({hard_memory}), pods({pod("a")}));
  (void)guard.pass(0s, memory(0));
  CHECK(guard.measured({}, observed({})) == Lines{});
  (void)guard.pass(1s, memory(0));
  CHECK(guard.measured({}, memory(0)) == Lines{"evict default/a (memory.available, grace 0s)"});
}

TEST_CASE("a pod that leaves the node while its disk is measured is no victim") {
  auto guard = kubelet(policy({threshold(NodefsAvailable, "10Gi")}), pods({pod("a"), pod("b"), pod("c")}));
  (void)guard.pass(0s, nodefs(1_GiB));
  (void)guard.reclaimed(nodefs(1_GiB));
  guard.set_pods(pods({pod("b"), pod("c"), pod("d")}));
  CHECK(guard.measured({{"a", fixture::disk_usage(9)}, {"b", fixture::disk_usage(5)}, {"c", fixture::disk_usage(1)}},
                       nodefs(1_GiB)) == Lines{"evict default/b (nodefs.available, grace 0s)"});
  CHECK(evicted(guard).ranking.size() == 2);
}

TEST_CASE("while a disk is measured, memory does not wait for it, nor is a second disk pass begun") {
  auto guard = kubelet(policy({hard_memory, threshold(NodefsAvailable, "10Gi")}), pods({pod("a")}));
  (void)guard.pass(0s, nodefs(1_GiB));
  (void)guard.reclaimed(nodefs(1_GiB));
  const auto disk = guard.waiting();
  CHECK(guard.pass(1s, nodefs(1_GiB)) == Lines{});
  CHECK(guard.pass(2s, observed({{NodefsAvailable, 1_GiB, 100_GiB}, {MemoryAvailable, 0, 4_GiB}})).back() ==
        "read pod usage: memory");
  CHECK(guard.answer(disk, PodsMeasured{.usage = {std::nullopt}}) ==
        Lines{"evict default/a (nodefs.available, grace 0s)"});
}

TEST_CASE("a changed policy holds from the next pass on; passes that wait are dropped, soft timers run on") {
  const auto soft = threshold(MemoryAvailable, "2Gi", 1min);
  auto guard = kubelet(policy({hard_memory, soft}), pods({pod("a")}));
  (void)guard.pass(0s, memory(0));
  CHECK(guard.tell(PolicyChanged{policy({soft})}) == Lines{});
  CHECK(guard.measured({}) == Lines{});
  CHECK(guard.pass(59s, memory(0)) == Lines{});
  CHECK(guard.pass(60s, memory(0)) == Lines{"read pod usage: memory"});
}

}  // namespace evictd::core::synchronizer_test
