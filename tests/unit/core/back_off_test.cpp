#include "core/back_off.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>

#include "core/eviction_order.hpp"
#include "fixture/pods.hpp"
#include "fixture/random.hpp"

namespace evictd::core::back_off_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::pod;

constexpr Instant at(Duration time) { return Instant{time}; }

RankedPod using_(std::string name, std::int64_t usage, std::int64_t request = 0) {
  return {.pod = std::make_shared<const Pod>(pod(std::move(name))), .usage = usage, .request = request};
}

std::vector<std::string> names(const std::vector<RankedPod>& ranking) {
  std::vector<std::string> result;
  for (const auto& ranked : ranking) result.push_back(ranked.pod->name);
  return result;
}

/// The names in the order that the back-off makes of the kubelet's.
std::vector<std::string> settled(const BackOff& back_off, std::vector<RankedPod> ranking, Signal signal) {
  settle_ties(ranking, back_off, signal, at(1s));
  return names(ranking);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("pods of one controller share all but the generated end of their names") {
  CHECK(controller_of(pod("web-5d4f8c7b6-x2x9z")) == controller_of(pod("web-5d4f8c7b6-kq7lm")));
  CHECK(controller_of(pod("agent-bcdfg")) == "default/agent");
  CHECK(controller_of(pod("db-0")) == "default/db-0");
  CHECK(controller_of(pod("mail-queue")) == "default/mail-queue");  // vowels are never generated
  CHECK(controller_of(pod("-bcdfg")) == "default/-bcdfg");
}

TEST_CASE("a pod whose controller has just lost one goes behind its equals, for as long as the back-off lasts") {
  BackOff back_off{1min};
  back_off.evicted(using_("db-bcdfg", 30), PidAvailable, at(0s));
  const auto next = using_("db-zzzzz", 30);
  CHECK(settled(back_off, {next, using_("web", 30), using_("mail", 30)}, PidAvailable) ==
        Names{"web", "mail", "db-zzzzz"});
  CHECK(back_off.holds(next, PidAvailable, at(59s)));
  CHECK_FALSE(back_off.holds(next, PidAvailable, at(60s)));
  CHECK_FALSE(back_off.holds(using_("other", 30), PidAvailable, at(1s)));
}

TEST_CASE("nothing but a tie is decided: not against a pod within its request, nor one that uses less") {
  BackOff back_off{5min};
  back_off.evicted(using_("leak-bcdfg", 900, 100), MemoryAvailable, at(0s));
  const std::vector ranking{using_("leak-zzzzz", 200, 100), using_("over", 150, 100), using_("within", 50, 100)};
  CHECK(settled(back_off, ranking, MemoryAvailable) == names(ranking));
}

TEST_CASE("a pod that has grown past what its predecessor was evicted at has no claim") {
  BackOff back_off{5min};
  back_off.evicted(using_("leak-bcdfg", 100), PidAvailable, at(0s));
  CHECK(settled(back_off, {using_("leak-zzzzz", 101), using_("web", 101)}, PidAvailable) == Names{"leak-zzzzz", "web"});
  CHECK(settled(back_off, {using_("leak-zzzzz", 100), using_("web", 100)}, PidAvailable) == Names{"web", "leak-zzzzz"});
}

TEST_CASE("what a pod went for says nothing of another resource, and a bound ties with nothing") {
  BackOff back_off{5min};
  back_off.evicted(using_("leak-bcdfg", 100), PidAvailable, at(0s));
  CHECK_FALSE(back_off.holds(using_("leak-zzzzz", 10), MemoryAvailable, at(1s)));
  auto bound = using_("web", 100);
  bound.at_most = true;
  CHECK(settled(back_off, {using_("leak-zzzzz", 100), bound}, PidAvailable) == Names{"leak-zzzzz", "web"});
}

TEST_CASE("without a time no pod is held") {
  BackOff back_off{0s};
  back_off.evicted(using_("db-0", 1), PidAvailable, at(0s));
  CHECK_FALSE(back_off.holds(using_("db-0", 1), PidAvailable, at(0s)));
  CHECK(back_off.state().empty());
}

TEST_CASE("property: the order of pods that the ranking tells apart is never changed") {
  for (const auto seed : fixture::seeds(1000)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    const auto signal = random.pick({MemoryAvailable, NodefsAvailable, NodefsInodesFree, PidAvailable});
    BackOff back_off{5min};
    PodList pods;
    std::vector<std::optional<PodUsage>> usage;
    for (auto left = random.between(1, 30); left > 0; --left) {
      auto one = pod(random.pick({"a-", "b-", "c-"}) + std::string{"bcdf"} + random.pick({"2", "4", "x", "z"}));
      one.priority = static_cast<std::int32_t>(random.between(0, 1));
      one.containers[0].resources.requests["memory"] = Quantity::bytes(random.between(0, 2));
      one.containers[0].resources.requests["ephemeral-storage"] = Quantity::bytes(random.between(0, 2));
      pods.push_back(std::make_shared<const Pod>(one));
      usage.push_back(PodUsage{
          .working_set = random.between(0, 4), .at_most = random.chance(10), .processes = random.between(0, 4)});
      usage.back()->containers = {
          {.name = "main", .rootfs = {.bytes = random.between(0, 4), .inodes = random.between(0, 4)}}};
      if (random.chance(10)) usage.back().reset();
    }
    const auto before = rank(signal, pods, usage, {});
    for (auto left = random.between(1, 3); left > 0; --left)
      back_off.evicted(before[static_cast<std::size_t>(random.between(0, static_cast<int>(before.size()) - 1))], signal,
                       at(0s));
    auto after = before;
    settle_ties(after, back_off, signal, at(1s));
    REQUIRE(std::ranges::is_permutation(after, before));
    const auto in_order = [&](const RankedPod& a, const RankedPod& b) { return compare(signal, a, b) <= 0; };
    for (std::size_t i = 0; i < after.size(); ++i)
      for (std::size_t j = i + 1; j < after.size(); ++j) CHECK(in_order(after[i], after[j]));
    // In particular one above its request and one within it.
    const auto above = [&](const RankedPod& r) { return r.has_stats && exceeds_request(signal, r); };
    for (std::size_t i = 0; i < after.size(); ++i) CHECK(above(after[i]) == above(before[i]));
  }
}

}  // namespace evictd::core::back_off_test
