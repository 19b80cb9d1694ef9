#include "core/eviction_order.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::core::eviction_order_rank_test {
namespace {

using enum Signal;
using fixture::container;
using fixture::pod;
using fixture::with_priority;
using fixture::operator""_GiB;
using fixture::operator""_MiB;
using Usage = std::optional<PodUsage>;

constexpr FilesystemLayout single{};
constexpr FilesystemLayout dedicated{.dedicated_imagefs = true};
constexpr FilesystemLayout split{.dedicated_imagefs = true, .split = true};

Usage memory(std::int64_t bytes) { return PodUsage{.working_set = bytes}; }
Usage processes(std::int64_t count) { return PodUsage{.processes = count}; }
const Usage no_stats;

Usage disk(std::int64_t rootfs, std::int64_t logs = 0) {
  PodUsage usage;
  usage.containers = {{.name = "main", .rootfs = {.bytes = rootfs}, .logs = {.bytes = logs}}};
  return usage;
}

Usage inodes(std::int64_t count) {
  PodUsage usage;
  usage.containers = {{.name = "main", .rootfs = {.inodes = count}}};
  return usage;
}

struct Candidate {
  Pod pod;
  Usage usage;
};

/// The names in the order in which the pods would go.
std::string order(Signal signal, const std::vector<Candidate>& candidates, FilesystemLayout layout = single) {
  PodList pods;
  std::vector<Usage> usage;
  for (const auto& candidate : candidates) {
    pods.push_back(std::make_shared<const Pod>(candidate.pod));
    usage.push_back(candidate.usage);
  }
  std::string names;
  for (const auto& ranked : rank(signal, pods, usage, layout)) names += (names.empty() ? "" : " ") + ranked.pod->name;
  return names;
}

Pod asking(std::string name, const char* resource, const char* amount) {
  return pod(std::move(name), {container("main", {{resource, amount}})});
}

}  // namespace

TEST_CASE("memory: who uses more than it asked for goes first, whatever its priority and amount") {
  CHECK(order(MemoryAvailable, {{with_priority(asking("within", "memory", "4Gi"), -10), memory(3_GiB)},
                                {with_priority(asking("above", "memory", "1Mi"), 10), memory(2_MiB)}}) ==
        "above within");
  CHECK(order(MemoryAvailable, {{pod("nothing-used"), memory(0)}, {pod("a-byte"), memory(1)}}) ==
        "a-byte nothing-used");
  CHECK(order(MemoryAvailable, {{with_priority(asking("at-request", "memory", "1Gi"), -1), memory(1_GiB)},
                                {asking("above", "memory", "1Gi"), memory(1_GiB + 1)}}) == "above at-request");
}

TEST_CASE("memory: then lower priority goes first, and none counts as 0") {
  CHECK(order(MemoryAvailable, {{with_priority(pod("high"), 1), memory(3_GiB)},
                                {pod("none"), memory(2_GiB)},
                                {with_priority(pod("low"), -1), memory(1_GiB)},
                                {with_priority(pod("zero"), 0), memory(1_GiB)}}) == "low none zero high");
}

TEST_CASE("memory: then who exceeds its request by more, not who uses more") {
  CHECK(order(MemoryAvailable, {{asking("big", "memory", "3Gi"), memory(3_GiB + 100_MiB)},
                                {asking("small", "memory", "100Mi"), memory(300_MiB)}}) == "small big");
  // Within their requests: who is closest to it.
  CHECK(order(MemoryAvailable, {{asking("far", "memory", "4Gi"), memory(1_GiB)},
                                {asking("near", "memory", "1Gi"), memory(900_MiB)}}) == "near far");
}

TEST_CASE("allocatable memory is ranked like memory") {
  CHECK(order(AllocatableMemoryAvailable, {{pod("less"), memory(1_MiB)}, {pod("more"), memory(2_MiB)}}) == "more less");
}

TEST_CASE("a pod without stats goes before all others for memory and disk; two of them by priority") {
  for (const auto signal : {MemoryAvailable, NodefsAvailable, NodefsInodesFree})
    CHECK(order(signal, {{with_priority(pod("hog"), -5), Usage{PodUsage{.working_set = 5_GiB}}},
                         {with_priority(pod("unknown-high"), 9), no_stats},
                         {with_priority(pod("unknown-low"), 8), no_stats}}) == "unknown-low unknown-high hog");
}

TEST_CASE("two pods without stats are equal beside their priority, whatever they asked for") {
  CHECK(order(MemoryAvailable, {{asking("x", "memory", "4Gi"), no_stats}, {pod("y"), no_stats}}) == "x y");
}

TEST_CASE("a number that is missing from the stats counts as none") {
  CHECK(order(MemoryAvailable, {{pod("missing"), PodUsage{}}, {pod("used"), memory(1)}}) == "used missing");
}

TEST_CASE(
    "process ids: lower priority goes first, then a pod without stats, then more processes; requests do not matter") {
  CHECK(order(PidAvailable, {{with_priority(pod("high"), 1), processes(1000)},
                             {with_priority(pod("high-unknown"), 1), no_stats},
                             {with_priority(asking("few", "memory", "1Mi"), 0), processes(5)},
                             {with_priority(pod("many"), 0), processes(50)}}) == "many few high-unknown high");
}

TEST_CASE("disk: usage above the ephemeral-storage request, then priority, then how much above") {
  CHECK(order(NodefsAvailable, {{with_priority(asking("within", "ephemeral-storage", "4Gi"), -10), disk(3_GiB)},
                                {with_priority(asking("above-high", "ephemeral-storage", "1Mi"), 10), disk(9_GiB)},
                                {asking("above", "ephemeral-storage", "1Gi"), disk(1_GiB, 1_MiB)},
                                {asking("above-more", "ephemeral-storage", "1Mi"), disk(10_MiB)}}) ==
        "above-more above above-high within");
}

TEST_CASE("disk: what counts depends on where it lies") {
  const std::vector<Candidate> candidates{{pod("layers"), disk(2_GiB, 1_MiB)}, {pod("logs"), disk(1_MiB, 1_GiB)}};
  CHECK(order(NodefsAvailable, candidates, single) == "layers logs");
  CHECK(order(NodefsAvailable, candidates, dedicated) == "logs layers");
  CHECK(order(ImagefsAvailable, candidates, dedicated) == "layers logs");
  CHECK(order(ContainerfsAvailable, candidates, dedicated) == "layers logs");
  CHECK(order(NodefsAvailable, candidates, split) == "layers logs");
}

TEST_CASE("a split imagefs knows no usage: priority, then the smallest request goes first") {
  CHECK(order(ImagefsAvailable,
              {{asking("asks-much", "ephemeral-storage", "9Gi"), disk(99_GiB)},
               {asking("asks-little", "ephemeral-storage", "1Gi"), disk(0)},
               {with_priority(asking("low", "ephemeral-storage", "99Gi"), -1), disk(0)}},
              split) == "low asks-little asks-much");
}

TEST_CASE("inodes: any use goes before none, then priority, then inodes less the request in bytes") {
  CHECK(order(NodefsInodesFree, {{with_priority(pod("none"), -5), inodes(0)},
                                 {with_priority(pod("high"), 5), inodes(1000)},
                                 {pod("few"), inodes(10)},
                                 {pod("many"), inodes(20)}}) == "many few high none");
  // The kubelet subtracts bytes from inodes.
  CHECK(order(NodefsInodesFree, {{asking("asks", "ephemeral-storage", "15"), inodes(20)}, {pod("few"), inodes(10)}}) ==
        "few asks");
}

TEST_CASE("equal pods keep their order") {
  std::vector<Candidate> equals;
  for (const auto* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r"})
    equals.push_back({pod(name), memory(1_GiB)});
  CHECK(order(MemoryAvailable, equals) == "a b c d e f g h i j k l m n o p q r");
}

TEST_CASE("the ranking tells the numbers it was made by") {
  const auto pods = fixture::pods({asking("x", "memory", "1Gi"), pod("y")});
  const auto ranking = rank(MemoryAvailable, pods, std::vector<Usage>{memory(2_GiB), no_stats}, single);
  REQUIRE(ranking.size() == 2);
  CHECK(ranking[0] == RankedPod{.pod = pods[1], .usage = 0, .request = 0, .has_stats = false});
  CHECK(ranking[1] == RankedPod{.pod = pods[0], .usage = 2_GiB, .request = 1_GiB, .has_stats = true});
  CHECK(rank(PidAvailable, pods, std::vector<Usage>{processes(3), processes(1)}, single)[0].request == 0);
}

TEST_CASE("a bare sandbox has nothing to gain but disk space, and only where nothing runs in it") {
  const auto victim = std::make_shared<const Pod>(pod("a"));
  const auto nothing_to_gain = [&](Signal signal, const PodUsage& usage) {
    return ranked(signal, victim, usage, {}).nothing_to_gain;
  };
  constexpr std::int64_t limit = 2 << 20;
  CHECK(nothing_to_gain(MemoryAvailable, {.working_set = limit, .runs = false}));
  CHECK(nothing_to_gain(AllocatableMemoryAvailable, {.working_set = 0, .runs = false}));
  CHECK_FALSE(nothing_to_gain(MemoryAvailable, {.working_set = limit + 1, .runs = false}));
  CHECK_FALSE(nothing_to_gain(MemoryAvailable, {.working_set = 0}));
  CHECK_FALSE(nothing_to_gain(MemoryAvailable, {.runs = false}));
  CHECK(nothing_to_gain(PidAvailable, {.runs = false, .processes = 1}));
  CHECK_FALSE(nothing_to_gain(PidAvailable, {.runs = false, .processes = 2}));
  CHECK_FALSE(nothing_to_gain(NodefsAvailable, {.working_set = 0, .runs = false}));
  CHECK_FALSE(ranked(MemoryAvailable, victim, std::nullopt, {}).nothing_to_gain);
}

TEST_CASE("pods whose usage is not in the list have no stats") {
  const auto pods = fixture::pods({pod("x"), pod("y")});
  const auto ranking = rank(MemoryAvailable, pods, std::vector<Usage>{memory(1)}, single);
  CHECK(ranking[0].pod->name == "y");
  CHECK_FALSE(ranking[0].has_stats);
}

}  // namespace evictd::core::eviction_order_rank_test
