#include "admission/allocation/hint_merge.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "fixture/random.hpp"
#include "fixture/result.hpp"

namespace evictd::admission::hint_merge_test {
namespace {

using fixture::Random;
using fixture::seeds;
using fixture::value_of;

const NumaMask four{NumaNodes{0, 1, 2, 3}};

Hint yes(NumaNodes nodes) { return {.affinity = NumaMask{nodes}, .preferred = true}; }
Hint no(NumaNodes nodes) { return {.affinity = NumaMask{nodes}, .preferred = false}; }
const Hint any_yes{.preferred = true};
const Hint any_no{.preferred = false};

using Hints = std::vector<std::vector<Hint>>;

/// What comes of one choice: what the masks have in common, preferred where all hints are and the masks are the same.
Hint merged(const std::vector<Hint>& choice, NumaMask all) {
  Hint result{.affinity = all, .preferred = true};
  std::optional<NumaMask> first;
  for (const auto& hint : choice) {
    if (!hint.preferred) result.preferred = false;
    if (!hint.affinity) continue;
    if (first && *first != *hint.affinity) result.preferred = false;
    if (!first) first = hint.affinity;
    result.affinity = *result.affinity & *hint.affinity;
  }
  return result;
}

/// The kubelet's comparison of the best so far with another choice, case by case.
bool replaces(const Hint& best, const Hint& other, int needed) {
  const int have = best.affinity->count();
  const int get = other.affinity->count();
  const bool narrower = is_narrower(*other.affinity, *best.affinity);
  if (best.preferred != other.preferred) return other.preferred;
  if (best.preferred || have > needed) return narrower;
  if (have == needed) return get == needed && narrower;
  if (get > needed) return false;
  if (get == needed || get > have) return true;
  return get == have && narrower;
}

void for_each_choice(const Hints& hints, const std::function<void(const std::vector<Hint>&)>& use,
                     std::vector<Hint> choice = {}) {
  if (choice.size() == hints.size()) return use(choice);
  for (const auto& hint : hints[choice.size()]) {
    auto more = choice;
    more.push_back(hint);
    for_each_choice(hints, use, more);
  }
}

/// Every choice, one after the other, as the kubelet does it.
Hint by_trying_all(const Hints& hints, NumaMask all) {
  int needed = 0;
  for (const auto& resource : hints) {
    std::optional<NumaMask> narrowest;
    for (const auto& hint : resource)
      if (hint.affinity && (!narrowest || is_narrower(*hint.affinity, *narrowest))) narrowest = hint.affinity;
    if (narrowest) needed = std::max(needed, narrowest->count());
  }
  std::optional<Hint> best;
  for_each_choice(hints, [&](const std::vector<Hint>& choice) {
    const auto candidate = merged(choice, all);
    if (candidate.affinity->empty()) return;
    if (!best || replaces(*best, candidate, needed)) best = candidate;
  });
  return best.value_or(Hint{.affinity = all, .preferred = false});
}

Hints any_hints(Random& random, NumaMask all) {
  Hints result(static_cast<std::size_t>(random.between(0, 4)));
  for (auto& resource : result)
    for (auto left = random.between(1, 5); left > 0; --left) {
      Hint hint{.preferred = random.chance(40)};
      if (random.chance(90))
        hint.affinity = NumaMask{static_cast<std::uint64_t>(random.between(1, static_cast<std::int64_t>(all.bits())))};
      resource.push_back(hint);
    }
  return result;
}

}  // namespace

TEST_CASE("who has nothing to say takes any node, and what cannot be had is not liked anywhere") {
  const std::vector<ProviderHints> providers{
      {}, {{"a", std::nullopt}, {"b", std::vector<Hint>{}}}, {{"c", std::vector{yes({1}), no({0, 1})}}}};
  CHECK(hints_by_resource(providers) == Hints{{any_yes}, {any_yes}, {any_no}, {yes({1}), no({0, 1})}});
}

TEST_CASE("hints merge as the kubelet merges them") {
  struct Case {
    const char* what;
    Hints hints;
    Hint expected;
  };
  const std::vector<Case> cases{
      {"nobody cares", {}, yes({0, 1, 2, 3})},
      {"any node will do", {{any_yes}, {any_yes}}, yes({0, 1, 2, 3})},
      {"one resource cannot be had", {{any_no}, {yes({1})}}, no({1})},
      {"the same node", {{yes({0}), yes({1})}, {yes({1})}}, yes({1})},
      {"the lower of two", {{yes({0}), yes({1})}, {yes({0}), yes({1})}}, yes({0})},
      {"any node and one", {{any_yes}, {yes({2})}}, yes({2})},
      {"preferred, but of different width", {{yes({1})}, {yes({0, 1})}}, no({1})},
      {"no node in common", {{yes({0})}, {yes({1})}}, no({0, 1, 2, 3})},
      {"preferred is worth more than narrow", {{no({0}), yes({1, 2})}, {no({0}), yes({1, 2})}}, yes({1, 2})},
      {"narrower than the neediest wants is passed over", {{no({0, 1, 2, 3}), no({0, 1})}, {no({0, 1})}}, no({0, 1})},
      {"as wide as the neediest wants", {{no({0, 1}), no({0, 2}), no({1, 2, 3})}, {no({0, 1, 2, 3})}}, no({1, 2, 3})},
      {"as near below as can be", {{no({0, 1, 2})}, {no({1, 2}), no({2})}, {no({0}), no({1, 2, 3})}}, no({1, 2})},
  };
  for (const auto& [what, hints, expected] : cases) {
    CAPTURE(what);
    CHECK(by_trying_all(hints, four) == expected);
    CHECK(merge(hints, {.all = four}) == expected);
  }
}

TEST_CASE("the closest nodes win where the operator wants them to, but never against fewer") {
  auto machine = value_of(make_topology({.sockets = 2, .numa_nodes_per_socket = 2}));
  const std::vector<std::vector<Hint>> hints{{yes({0, 2}), yes({2, 3}), yes({0, 1, 2})}};
  CHECK(merge(hints, {.all = four}) == yes({0, 2}));
  CHECK(merge(hints, {.all = four, .distances = &machine}) == yes({2, 3}));
  CHECK(merge({{yes({0, 1}), yes({2, 3})}}, {.all = four, .distances = &machine}) == yes({0, 1}));
  CHECK(merge({{yes({3}), yes({0, 1})}}, {.all = four, .distances = &machine}) == yes({3}));
  const std::vector<std::vector<Hint>> unloved{{no({0, 2}), no({2, 3})}};
  CHECK(merge(unloved, {.all = four, .distances = &machine}) == no({2, 3}));
}

TEST_CASE("property: following the masks that can come out is as good as trying every choice") {
  for (const auto seed : seeds(3000)) {
    CAPTURE(seed);
    Random random{seed};
    const NumaMask all{(std::uint64_t{1} << random.between(1, 4)) - 1};
    const auto hints = any_hints(random, all);
    CHECK(merge(hints, {.all = all}) == by_trying_all(hints, all));
  }
}

TEST_CASE("property: the merged mask lies within some hint of each resource") {
  for (const auto seed : seeds(1000)) {
    CAPTURE(seed);
    Random random{seed};
    const NumaMask all{(std::uint64_t{1} << random.between(1, 8)) - 1};
    const auto hints = any_hints(random, all);
    const auto result = merge(hints, {.all = all});
    REQUIRE(result.affinity);
    CHECK(all.contains(*result.affinity));
    bool one_of_each = false;
    for_each_choice(hints, [&](const std::vector<Hint>& choice) {
      const bool all_hold = std::ranges::all_of(
          choice, [&](const Hint& hint) { return !hint.affinity || hint.affinity->contains(*result.affinity); });
      const bool all_preferred = std::ranges::all_of(choice, &Hint::preferred);
      one_of_each = one_of_each || (all_hold && (all_preferred || !result.preferred));
    });
    const bool nothing_in_common = result == Hint{.affinity = all, .preferred = false};
    CHECK((one_of_each || nothing_in_common));
  }
}

TEST_CASE("many resources on many nodes are merged at once") {
  const NumaMask all{0xff};
  std::vector<Hint> every;
  for_each_mask(all, [&](NumaMask mask) { every.push_back({.affinity = mask, .preferred = mask.count() == 3}); });
  const Hints hints(12, every);  // 255^12 choices
  CHECK(merge(hints, {.all = all}) == yes({0, 1, 2}));
}

}  // namespace evictd::admission::hint_merge_test
