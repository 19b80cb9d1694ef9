#include "core/in_flight.hpp"

#include <doctest/doctest.h>

#include "fixture/node.hpp"

namespace evictd::core::in_flight_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::pod;
using fixture::threshold;
using fixture::with_min_reclaim;
using fixture::operator""_GiB;
using fixture::operator""_MiB;

constexpr FilesystemLayout single{};
constexpr FilesystemLayout dedicated{.dedicated_imagefs = true};

/// The eviction of a pod called `name` for a signal (hard, at once) that will give back so much.
Eviction eviction(std::string name, EvictionCause cause, std::int64_t release, Duration grace = 0s,
                  bool has_stats = true) {
  const auto victim = std::make_shared<const Pod>(pod(std::move(name)));
  Eviction evict{.pod = victim, .cause = cause, .grace_period = grace, .message = {}, .expected_release = release};
  if (std::holds_alternative<Signal>(cause))
    evict.ranking = {{.pod = victim, .usage = release, .request = 0, .has_stats = has_stats}};
  return evict;
}

InFlight with(const Eviction& evict) {
  InFlight in_flight;
  in_flight.add(evict);
  return in_flight;
}

bool short_of(const InFlight& in_flight, const Threshold& threshold, std::int64_t available, bool unresolved = false,
              FilesystemLayout layout = single) {
  return in_flight.leaves_short({threshold, unresolved}, {.available = available, .capacity = 100_GiB}, layout);
}

const auto low_memory = threshold(MemoryAvailable, "1Gi");

}  // namespace

TEST_CASE("without evictions under way a threshold is short of what it is short of") {
  CHECK(short_of({}, low_memory, 1_GiB - 1));
  CHECK_FALSE(short_of({}, low_memory, 1_GiB));
  CHECK_FALSE(short_of({}, with_min_reclaim(low_memory, "1Gi"), 1_GiB));
  CHECK(short_of({}, with_min_reclaim(low_memory, "1Gi"), 1_GiB, true));
}

TEST_CASE("what is on its way counts as available: enough of it satisfies a threshold, less does not") {
  const auto in_flight = with(eviction("a", MemoryAvailable, 500_MiB));
  CHECK_FALSE(short_of(in_flight, low_memory, 524_MiB));
  CHECK(short_of(in_flight, low_memory, 523_MiB));
}

TEST_CASE("several evictions add up") {
  auto in_flight = with(eviction("a", MemoryAvailable, 300_MiB));
  in_flight.add(eviction("b", MemoryAvailable, 300_MiB));
  CHECK_FALSE(short_of(in_flight, low_memory, 424_MiB));
  CHECK(short_of(in_flight, low_memory, 423_MiB));
}

TEST_CASE("memory that comes back helps both memory signals, and neither disk nor process ids") {
  const auto in_flight = with(eviction("a", AllocatableMemoryAvailable, 50_GiB));
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
  CHECK_FALSE(short_of(in_flight, threshold(AllocatableMemoryAvailable, "1Gi"), 0));
  CHECK(short_of(in_flight, threshold(NodefsAvailable, "1Gi"), 0));
  CHECK(short_of(in_flight, threshold(PidAvailable, "1Gi"), 0));
}

TEST_CASE("what a victim still holds is measured anew, since what it gave back is available already") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.update(std::vector<Releasing>{{"a", 100_MiB}, {"stranger", 50_GiB}});
  CHECK_FALSE(short_of(in_flight, low_memory, 924_MiB));
  CHECK(short_of(in_flight, low_memory, 923_MiB));
}

TEST_CASE("disk space that comes back helps every signal of the same file system by its amount") {
  const auto for_nodefs = with(eviction("a", NodefsAvailable, 2_GiB));
  for (const auto signal : {NodefsAvailable, ImagefsAvailable, ContainerfsAvailable}) {
    CHECK_FALSE(short_of(for_nodefs, threshold(signal, "3Gi"), 1_GiB));
    CHECK(short_of(for_nodefs, threshold(signal, "3Gi"), 1_GiB - 1));
  }
  const auto for_imagefs = with(eviction("a", ImagefsAvailable, 2_GiB));
  CHECK(short_of(for_imagefs, threshold(ContainerfsAvailable, "3Gi"), 1_GiB - 1, false, dedicated));
  CHECK_FALSE(short_of(for_imagefs, threshold(ContainerfsAvailable, "3Gi"), 1_GiB, false, dedicated));
}

TEST_CASE("what it gives back elsewhere on disk is unknown, so it is waited for") {
  const auto in_flight = with(eviction("a", NodefsAvailable, 1));
  CHECK_FALSE(short_of(in_flight, threshold(NodefsInodesFree, "1k"), 0));
  CHECK_FALSE(short_of(in_flight, threshold(ImagefsAvailable, "9Gi"), 0, false, dedicated));
  CHECK(short_of(in_flight, low_memory, 0));
}

TEST_CASE("a pod that goes for a limit of its own is waited for where disk is short") {
  const auto in_flight = with(eviction("a", LocalStorageLimit::EmptyDir, 0));
  CHECK_FALSE(short_of(in_flight, threshold(NodefsAvailable, "9Gi"), 0));
  CHECK(short_of(in_flight, low_memory, 0));
}

TEST_CASE("a pod without stats gives back nobody knows how much, so it is waited for until it is measured") {
  auto in_flight = with(eviction("a", MemoryAvailable, 0, 0s, false));
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
  in_flight.update(std::vector<Releasing>{{"a", 100_MiB}});
  CHECK(short_of(in_flight, low_memory, 0));
}

TEST_CASE("a pod that was given time to stop does not count for a hard threshold, but for a soft one") {
  const auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB, 30s));
  CHECK(short_of(in_flight, low_memory, 0));
  CHECK_FALSE(short_of(in_flight, threshold(MemoryAvailable, "1Gi", 1min), 0));
}

TEST_CASE("an eviction whose cleanup ended counts no more, whether it worked or not") {
  for (const bool released : {true, false}) {
    auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
    in_flight.end({.uid = "a", .released = released});
    CHECK(short_of(in_flight, low_memory, 0));
  }
}

TEST_CASE("a pod that is going is not chosen again") {
  const auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  CHECK_FALSE(in_flight.may_choose(pod("a")));
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  CHECK(in_flight.may_choose(pod("b")));
  CHECK(in_flight.may_choose(pod("b"), low_memory));
}

TEST_CASE(
    "what was only reported is forgotten once it is done, also where it did not end the pod, and is never saved") {
  auto in_flight = with(eviction("done", MemoryAvailable, 1_GiB));
  in_flight.change({.acts = false});
  in_flight.add(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.add(eviction("b", MemoryAvailable, 2_GiB));
  in_flight.end({.uid = "b", .released = false, .only_reported = true});
  CHECK_FALSE(in_flight.may_choose(pod("a")));
  CHECK(in_flight.is_stuck(pod("b")));
  REQUIRE(in_flight.to_save().size() == 1);
  CHECK(in_flight.to_save().front().uid == "done");

  in_flight.change({.acts = true});
  CHECK(in_flight.may_choose(pod("a"), low_memory));
  CHECK_FALSE(in_flight.is_stuck(pod("a")));
  CHECK_FALSE(in_flight.is_stuck(pod("b")));
  CHECK_FALSE(in_flight.may_choose(pod("done")));
  in_flight.add(eviction("a", MemoryAvailable, 2_GiB));
  CHECK(in_flight.to_save().size() == 2);
}

TEST_CASE("what is only reported of a pod that is really going takes nothing from that") {
  const auto few_pids = threshold(Signal::PidAvailable, "100");
  auto in_flight = with(eviction("stopping", MemoryAvailable, 1_GiB, 60s));
  in_flight.add(eviction("held", MemoryAvailable, 1_GiB));
  in_flight.hold({"held"});
  in_flight.change({.acts = false});
  REQUIRE(in_flight.may_choose(pod("stopping"), low_memory));
  in_flight.add(eviction("stopping", MemoryAvailable, 1_GiB));
  CHECK_FALSE(in_flight.may_choose(pod("stopping"), low_memory));
  REQUIRE(in_flight.may_choose(pod("held"), few_pids));
  in_flight.add(eviction("held", Signal::PidAvailable, 100));
  CHECK_FALSE(in_flight.may_choose(pod("held"), few_pids));
  for (const auto* uid : {"stopping", "held"}) in_flight.end({.uid = uid, .released = false, .only_reported = true});
  CHECK(in_flight.to_save().size() == 2);

  in_flight.change({.acts = true});
  CHECK_FALSE(in_flight.may_choose(pod("stopping")));
  CHECK(in_flight.may_choose(pod("stopping"), low_memory));
  CHECK_FALSE(in_flight.is_stuck(pod("held")));
  CHECK(in_flight.may_choose(pod("held"), few_pids));
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
}

TEST_CASE("what displaces a pod is done also while decisions are only reported") {
  InFlight in_flight;
  in_flight.change({.acts = false});
  in_flight.displaced(eviction("a", Displacement::NodeShutdown, 1_GiB));
  CHECK(in_flight.to_save().size() == 1);
  in_flight.change({.acts = true});
  CHECK_FALSE(in_flight.may_choose(pod("a")));
}

TEST_CASE("a pod that is held takes no more memory; for anything else that runs short it may be chosen") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  const auto few_pids = threshold(Signal::PidAvailable, "100");
  CHECK_FALSE(in_flight.may_choose(pod("a"), few_pids));
  in_flight.hold({"a"});
  CHECK(in_flight.may_choose(pod("a"), few_pids));
  CHECK_FALSE(in_flight.may_choose(pod("a"), threshold(Signal::PidAvailable, "100", 1min)));
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  in_flight.hold({"a", false});
  in_flight.hold({"b"});
  CHECK_FALSE(in_flight.may_choose(pod("a"), few_pids));
  CHECK(in_flight.to_save().size() == 1);
}

TEST_CASE("of a pod that was held, and is hurried for something else, the memory counts as well") {
  const auto few_pids = threshold(Signal::PidAvailable, "100");
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.hold({"a"});
  in_flight.add(eviction("a", Signal::PidAvailable, 200));
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
  CHECK_FALSE(short_of(in_flight, few_pids, 0));
  CHECK_FALSE(in_flight.may_choose(pod("a"), few_pids));
  in_flight.update(std::array{Releasing{"a", 100}});
  CHECK(short_of(in_flight, low_memory, 0));
  in_flight.end({"a"});
  CHECK(short_of(in_flight, few_pids, 0));
  in_flight.returned("a");
  CHECK(in_flight.to_save().empty());
}

TEST_CASE("a pod that is stopping may be chosen by a hard threshold, which hurries it") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB, 30s));
  CHECK(in_flight.may_choose(pod("a"), low_memory));
  CHECK_FALSE(in_flight.may_choose(pod("a"), threshold(MemoryAvailable, "2Gi", 1min)));
  in_flight.add(eviction("a", MemoryAvailable, 2_GiB));
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
}

TEST_CASE("a pod that has gone is not chosen while the list of pods still names it") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.end({.uid = "a"});
  in_flight.retain(fixture::pods({pod("a")}), Instant{});
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  in_flight.retain({}, Instant{});
  CHECK(in_flight.may_choose(pod("a"), low_memory));
}

TEST_CASE("a pod that lists have gone on naming for a minute after it has gone may be chosen again") {
  const auto list = fixture::pods({pod("a")});
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.retain(list, Instant{0s});
  in_flight.end({.uid = "a"});
  in_flight.retain(list, Instant{90s});
  in_flight.retain(list, Instant{149s});
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  in_flight.end({.uid = "a"});  // once more
  in_flight.retain(list, Instant{150s});
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  in_flight.retain(list, Instant{210s});
  CHECK(in_flight.may_choose(pod("a"), low_memory));
}

TEST_CASE("a pod that has gone and runs again may be chosen at once, one that is going or stuck is as it was") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.returned("a");
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  in_flight.end({.uid = "a"});
  in_flight.returned("b");
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  in_flight.returned("a");
  CHECK(in_flight.may_choose(pod("a"), low_memory));
  CHECK(in_flight.to_save().empty());
  in_flight.add(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.end({.uid = "a", .released = false});
  in_flight.returned("a");
  CHECK(in_flight.is_stuck(pod("a")));
}

TEST_CASE("a pod that is still going is remembered even when the list of pods does not name it any more") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.retain({}, Instant{});
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
}

TEST_CASE("a pod whose cleanup timed out may be chosen again, after all others, but not for a limit of its own") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  CHECK_FALSE(in_flight.is_stuck(pod("a")));
  in_flight.end({.uid = "a", .released = false});
  CHECK(in_flight.is_stuck(pod("a")));
  CHECK_FALSE(in_flight.may_choose(pod("a")));
  CHECK(in_flight.may_choose(pod("a"), low_memory));
  in_flight.add(eviction("a", MemoryAvailable, 2_GiB));
  CHECK_FALSE(in_flight.is_stuck(pod("a")));
}

TEST_CASE("a displaced pod is not chosen, and the memory it still holds counts as on its way") {
  auto in_flight = with(eviction("a", Displacement::Preemption, 0));
  CHECK_FALSE(in_flight.may_choose(pod("a"), low_memory));
  CHECK(short_of(in_flight, low_memory, 523_MiB));
  in_flight.update(std::vector<Releasing>{{"a", 501_MiB}});
  CHECK_FALSE(short_of(in_flight, low_memory, 523_MiB));
  CHECK(short_of(in_flight, threshold(NodefsAvailable, "1Gi"), 523_MiB));
}

TEST_CASE("of what was measured on disks of a pod that goes for memory the largest shows what came back") {
  auto in_flight = with(eviction("a", MemoryAvailable, 1_GiB));
  const auto measured = [](std::int64_t usage) {
    return RankedPod{.pod = std::make_shared<const Pod>(pod("a")), .usage = usage};
  };
  CHECK_FALSE(in_flight.disk_release("a"));
  in_flight.measured(NodefsInodesFree, {.available = 9, .capacity = 100}, measured(1'000));
  in_flight.measured(NodefsAvailable, {.available = 2_GiB, .capacity = 100_GiB}, measured(600_MiB));
  in_flight.measured(NodefsAvailable, {.available = 3_GiB, .capacity = 100_GiB}, measured(100_MiB));
  CHECK(in_flight.disk_release("a") == DiskRelease{NodefsAvailable, 600_MiB, 2_GiB});
  CHECK_FALSE(in_flight.disk_release("b"));
  in_flight = with(eviction("a", NodefsAvailable, 1_GiB));
  in_flight.measured(NodefsAvailable, {.available = 2_GiB, .capacity = 100_GiB}, measured(600_MiB));
  CHECK_FALSE(in_flight.disk_release("a"));
}

TEST_CASE("a displaced pod that has time to stop hurries when memory runs short") {
  const auto in_flight = with(eviction("a", Displacement::NodeShutdown, 0, 30s));
  CHECK(in_flight.may_choose(pod("a"), low_memory));
  CHECK_FALSE(in_flight.may_choose(pod("a")));
}

TEST_CASE("the end of an eviction nobody knows of changes nothing") {
  auto in_flight = with(eviction("a", MemoryAvailable, 2_GiB));
  in_flight.end({.uid = "stranger"});
  CHECK_FALSE(short_of(in_flight, low_memory, 0));
}

}  // namespace evictd::core::in_flight_test
