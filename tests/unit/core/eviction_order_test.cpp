#include "core/eviction_order.hpp"

#include <doctest/doctest.h>

#include "fixture/guard.hpp"
#include "fixture/node.hpp"

namespace evictd::core::eviction_order_test {
namespace {

using namespace std::chrono_literals;
using enum Signal;
using fixture::memory_usage;
using fixture::pod;
using fixture::pods;
using fixture::threshold;
using fixture::with_priority;
using fixture::operator""_GiB;

using Names = std::vector<std::string>;

const auto hard_memory = threshold(MemoryAvailable, "2Gi");
const auto hard_disk = threshold(NodefsAvailable, "10Gi");

/// What is known of a node's pods, and the order that follows.
struct Node {
  InFlight in_flight{};
  BackOff back_off{5min};
  std::set<std::string, std::less<>> unlisted{};

  [[nodiscard]] EvictionOrder order() const {
    return EvictionOrder{{.in_flight = in_flight, .back_off = back_off, .unlisted = unlisted}};
  }

  void evict(const std::string& name, Duration grace_period = 0s) {
    in_flight.add({.pod = std::make_shared<const Pod>(pod(name)),
                   .cause = MemoryAvailable,
                   .grace_period = grace_period,
                   .message = {}});
  }
};

Names names(const std::vector<RankedPod>& ranking) {
  Names result;
  for (const auto& ranked : ranking) result.push_back(ranked.pod->name);
  return result;
}

/// These pods, of which each holds 1 GiB less than the one before it.
std::vector<RankedPod> descending(const EvictionOrder& order, const PodList& pods) {
  std::vector<std::optional<PodUsage>> usage;
  for (auto bytes = 8_GiB; usage.size() < pods.size(); bytes -= 1_GiB) usage.emplace_back(memory_usage(bytes));
  return order.ranking(hard_memory, pods, usage, Instant{});
}

}  // namespace

TEST_CASE("a critical pod is excluded, but has its place in the order") {
  const Node node;
  const auto vital = with_priority(pod("vital"), system_critical_priority);
  CHECK(node.order().eligibility(vital, hard_memory) == Eligibility::excluded);
  CHECK(node.order().place(vital, hard_memory) == Eligibility::candidate);
  CHECK(names(descending(node.order(), pods({pod("a"), vital}))) == Names{"a", "vital"});
}

TEST_CASE("a negative request puts no pod before one that uses more") {
  auto liar = pod("liar");  // as a whole: its containers together request zero at least
  liar.resources.emplace().requests["memory"] = Quantity{} - Quantity::bytes(4_GiB);
  const std::vector<std::optional<PodUsage>> usage{memory_usage(1_GiB), memory_usage(2_GiB)};
  CHECK(names(rank(MemoryAvailable, pods({liar, pod("hog")}), usage, {})) == Names{"hog", "liar"});
}

TEST_CASE("a pod on its way out has no place, one that did not end goes last") {
  Node node;
  node.evict("going");
  node.evict("stuck");
  node.in_flight.end({.uid = "stuck", .released = false});
  CHECK(node.order().eligibility(pod("going"), hard_memory) == Eligibility::excluded);
  CHECK(node.order().eligibility(pod("stuck"), hard_memory) == Eligibility::last);
  CHECK(names(descending(node.order(), pods({pod("going"), pod("stuck"), pod("a")}))) == Names{"a", "stuck"});
}

TEST_CASE("where nothing counts as in flight a pod on its way out stands as before") {
  Node node{.in_flight = InFlight{false}};
  node.evict("going");
  CHECK(node.order().eligibility(pod("going"), hard_memory) == Eligibility::candidate);
  CHECK(node.in_flight.to_save().empty());
}

TEST_CASE("an unlisted pod may go for memory, not for a disk") {
  const Node node{.unlisted = {"new"}};
  CHECK(node.order().eligibility(pod("new"), hard_memory) == Eligibility::unlisted);
  CHECK(node.order().eligibility(pod("new"), hard_disk) == Eligibility::excluded);
}

TEST_CASE("a listed pod that ends the shortage takes the place of an unlisted one; the others keep their order") {
  const Node node{.unlisted = {"new"}};
  const Acted acted{hard_memory, {.available = 1_GiB, .capacity = 16_GiB}};
  auto ranking = descending(node.order(), pods({pod("new"), pod("a"), pod("b")}));
  node.order().prefer_listed(ranking, acted);
  CHECK(names(ranking) == Names{"a", "new", "b"});
}

TEST_CASE("pods that left the node, and those that are marked, are left out") {
  const Node node;
  const auto list = pods({pod("a"), pod("b"), pod("c")});
  auto ranking = descending(node.order(), list);
  leave_out_gone(ranking, pods({pod("b"), pod("c"), pod("d")}));
  CHECK(names(ranking) == Names{"b", "c"});
  leave_out(ranking, list, {true, true, false});
  CHECK(names(ranking) == Names{"c"});
}

TEST_CASE("neither a critical pod may go, nor one that would give nothing back") {
  const auto list = pods({pod("a"), with_priority(pod("vital"), system_critical_priority)});
  CHECK(may_go({.pod = list[0]}));
  CHECK_FALSE(may_go({.pod = list[0], .nothing_to_gain = true}));
  CHECK_FALSE(may_go({.pod = list[1]}));
}

}  // namespace evictd::core::eviction_order_test
