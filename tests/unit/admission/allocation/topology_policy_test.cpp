#include "admission/allocation/topology_policy.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "fixture/random.hpp"
#include "fixture/result.hpp"

namespace evictd::admission::topology_policy_test {
namespace {

using fixture::error_of;
using fixture::Random;
using fixture::seeds;

const NumaMask two{NumaNodes{0, 1}};

Hint yes(NumaNodes nodes) { return {.affinity = NumaMask{nodes}, .preferred = true}; }
Hint no(NumaNodes nodes) { return {.affinity = NumaMask{nodes}, .preferred = false}; }

ProviderHints of(std::vector<Hint> hints) { return {{"cpu", std::move(hints)}}; }

constexpr std::array policies{TopologyPolicy::None, TopologyPolicy::BestEffort, TopologyPolicy::Restricted,
                              TopologyPolicy::SingleNumaNode};

std::vector<ProviderHints> any_providers(Random& random, NumaMask all) {
  std::vector<ProviderHints> result(static_cast<std::size_t>(random.between(1, 3)));
  for (auto& provider : result)
    for (auto resources = random.between(0, 2); resources > 0; --resources) {
      auto& hints = provider["r" + std::to_string(resources)];
      if (random.chance(20)) continue;  // does not care
      hints.emplace();
      for (auto left = random.between(0, 4); left > 0; --left)
        hints->push_back(
            {.affinity = NumaMask{static_cast<std::uint64_t>(random.between(1, static_cast<std::int64_t>(all.bits())))},
             .preferred = random.chance(60)});
    }
  return result;
}

}  // namespace

TEST_CASE("policies and scopes go by the kubelet's names") {
  CHECK(parse_topology_policy("none") == TopologyPolicy::None);
  CHECK(parse_topology_policy("best-effort") == TopologyPolicy::BestEffort);
  CHECK(parse_topology_policy("restricted") == TopologyPolicy::Restricted);
  CHECK(parse_topology_policy("single-numa-node") == TopologyPolicy::SingleNumaNode);
  CHECK(error_of(parse_topology_policy("Restricted")) == "unknown policy: \"Restricted\"");
  CHECK(parse_topology_scope("container") == TopologyScope::Container);
  CHECK(parse_topology_scope("pod") == TopologyScope::Pod);
  CHECK(error_of(parse_topology_scope("node")) == "invalid scope name: \"node\"");
}

TEST_CASE("what each policy makes of the same hints") {
  struct Case {
    const char* what;
    std::vector<ProviderHints> providers;
    std::array<bool, 4> admitted;  // none, best-effort, restricted, single-numa-node
    std::array<Hint, 4> hint;
  };
  const Hint any_yes{.preferred = true};
  const std::vector<Case> cases{
      {"nobody cares", {{}}, {true, true, true, true}, {Hint{}, yes({0, 1}), yes({0, 1}), any_yes}},
      {"one node is enough",
       {of({yes({0}), yes({1}), no({0, 1})}), of({yes({1})})},
       {true, true, true, true},
       {Hint{}, yes({1}), yes({1}), yes({1})}},
      {"two nodes are needed",
       {of({yes({0, 1})})},
       {true, true, true, false},
       {Hint{}, yes({0, 1}), yes({0, 1}), Hint{}}},
      {"one node would do, but is full",
       {of({no({0, 1})})},
       {true, true, false, false},
       {Hint{}, no({0, 1}), no({0, 1}), Hint{}}},
      {"no way to have it", {of({})}, {true, true, false, false}, {Hint{}, no({0, 1}), no({0, 1}), Hint{}}},
  };
  for (const auto& [what, providers, admitted, hint] : cases)
    for (std::size_t i = 0; i < policies.size(); ++i) {
      CAPTURE(what);
      CAPTURE(i);
      const auto decision = decide(policies[i], providers, {.all = two});
      CHECK(decision.admitted == admitted[i]);
      CHECK(decision.hint == hint[i]);
    }
}

TEST_CASE("on a machine of one node single-numa-node leaves the place open") {
  const auto decision = decide(TopologyPolicy::SingleNumaNode, {of({yes({0})})}, {.all = NumaMask::of(0)});
  CHECK(decision.admitted);
  CHECK_FALSE(decision.hint.affinity.has_value());
}

TEST_CASE("property: best-effort always admits, restricted what is preferred, and single-numa-node never spans") {
  for (const auto seed : seeds(2000)) {
    CAPTURE(seed);
    Random random{seed};
    const NumaMask all{(std::uint64_t{1} << random.between(1, 5)) - 1};
    const auto providers = any_providers(random, all);
    const MergeRules rules{.all = all};
    const auto best_effort = decide(TopologyPolicy::BestEffort, providers, rules);
    const auto restricted = decide(TopologyPolicy::Restricted, providers, rules);
    const auto single = decide(TopologyPolicy::SingleNumaNode, providers, rules);
    CHECK(best_effort.admitted);
    CHECK(restricted.hint == best_effort.hint);
    CHECK(restricted.admitted == restricted.hint.preferred);
    if (!single.admitted) continue;
    CHECK(restricted.admitted);
    if (single.hint.affinity)
      CHECK(single.hint.affinity->count() == 1);
    else
      // Nobody cares where, or there is only one node.
      CHECK((all.count() == 1 || std::ranges::all_of(hints_by_resource(providers), [](const auto& hints) {
               return std::ranges::any_of(hints, [](const Hint& hint) { return !hint.affinity && hint.preferred; });
             })));
  }
}

}  // namespace evictd::admission::topology_policy_test
