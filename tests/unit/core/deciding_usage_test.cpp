#include "core/deciding_usage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "core/eviction_order.hpp"
#include "fixture/pods.hpp"
#include "fixture/random.hpp"

namespace evictd::core::deciding_usage_test {
namespace {

using fixture::pod;
using fixture::Random;
using fixture::with_priority;
using fixture::operator""_MiB;

/// Pods with what they hold and what of that is their working set.
struct Node {
  /// Notes what is read.
  class Readings final : public MemoryReadings {
   public:
    explicit Readings(Node& node) : node_{node} {}
    [[nodiscard]] std::span<const std::size_t> order() const override { return node_.order; }
    [[nodiscard]] std::size_t always() const override { return node_.always; }
    [[nodiscard]] std::optional<std::int64_t> held(std::size_t place) const override {
      node_.looked_at.push_back(place);
      if (node_.looked_at.size() == 50 && node_.meanwhile) node_.meanwhile();
      return node_.held[place];
    }
    [[nodiscard]] std::optional<std::int64_t> working_set(std::size_t place) const override {
      node_.read.push_back(place);
      return node_.working_sets[place];
    }
    [[nodiscard]] std::optional<std::int64_t> held_together() const override { return node_.together; }
    [[nodiscard]] bool runs(std::size_t place) const override { return node_.runs[place]; }

   private:
    Node& node_;
  };

  PodList pods;
  std::vector<Eligibility> eligibilities;
  std::vector<std::optional<std::int64_t>> held;
  std::vector<std::optional<std::int64_t>> working_sets;
  std::vector<std::size_t> order{};
  std::size_t always = 0;
  std::optional<std::int64_t> together{};
  std::vector<bool> runs{};
  std::vector<std::size_t> looked_at{};  ///< whose cgroup was read, in order
  std::vector<std::size_t> read{};       ///< whose working set was read, in order
  std::function<void()> meanwhile{};     ///< happens when the 50th cgroup is read

  void add(Pod pod, std::optional<std::int64_t> holds, std::optional<std::int64_t> working_set,
           Eligibility eligibility = Eligibility::candidate) {
    order.push_back(pods.size());
    pods.push_back(std::make_shared<const Pod>(std::move(pod)));
    held.push_back(holds);
    working_sets.push_back(working_set);
    eligibilities.push_back(eligibility);
    runs.push_back(true);
  }
  std::vector<std::optional<PodUsage>> decide() {
    read.clear();
    looked_at.clear();
    return read_deciding_usage(pods, eligibilities, Readings{*this});
  }
  std::vector<std::optional<PodUsage>> lead(std::size_t count) {
    runs.assign(pods.size(), true);
    return read_leading_usage(pods, eligibilities, Readings{*this}, count);
  }
  /// What all behind the first `always` hold.
  [[nodiscard]] std::int64_t sum() const {
    std::int64_t result = 0;
    for (std::size_t i = always; i < order.size(); ++i) result += held[order[i]].value_or(0);
    return result;
  }
  /// The first to go by these numbers.
  [[nodiscard]] std::optional<RankedPod> first(std::span<const std::optional<PodUsage>> usage) const {
    for (const auto wanted : {Eligibility::candidate, Eligibility::unlisted, Eligibility::last})
      for (const auto& ranked : rank(Signal::MemoryAvailable, pods, usage, {}))
        if (eligibilities[static_cast<std::size_t>(std::ranges::find(pods, ranked.pod) - pods.begin())] == wanted &&
            !ranked.nothing_to_gain)
          return ranked;
    return std::nullopt;
  }
};

Pod with_request(Pod pod, std::int64_t bytes) {
  pod.containers[0].resources.requests["memory"] = Quantity::bytes(bytes);
  return pod;
}

Node any_node(Random& random) {
  Node node;
  for (auto left = random.between(0, 100); left > 0; --left) {
    auto one = pod("p" + std::to_string(left));
    if (random.chance(50)) one.priority = static_cast<std::int32_t>(random.between(-1, 1));
    if (random.chance(50)) one.containers[0].resources.requests["memory"] = Quantity::bytes(random.between(0, 8));
    const auto holds = random.chance(5) ? random.between(100, 1000) : random.between(0, 10);
    const bool has_stats = random.chance(95);
    node.add(one, has_stats ? std::optional(holds) : std::nullopt,
             has_stats ? std::optional(random.between(0, holds)) : std::nullopt,
             random.pick({Eligibility::candidate, Eligibility::candidate, Eligibility::unlisted, Eligibility::last,
                          Eligibility::excluded}));
    node.runs.back() = random.chance(90);
  }
  // In any order; but whoever cannot be read is among those that are read in any case.
  for (auto i = node.order.size(); i > 1; --i)
    std::swap(node.order[i - 1], node.order[static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1))]);
  const auto can_be_read = [&](std::size_t place) { return node.held[place].has_value(); };
  const auto behind = std::ranges::stable_partition(node.order, std::not_fn(can_be_read));
  node.always = node.order.size() - behind.size();
  if (random.chance(80)) node.together = node.sum() + random.between(0, 20);
  return node;
}

}  // namespace

TEST_CASE("only the working set that can win is read") {
  Node node;
  node.add(pod("small"), 10, 10);
  node.add(pod("big"), 100, 90);
  node.add(pod("middle"), 50, 50);
  const auto usage = node.decide();
  CHECK(node.read == std::vector<std::size_t>{1});
  CHECK(usage[1] == PodUsage{.working_set = 90});
  CHECK(usage[0] == PodUsage{.working_set = 10, .at_most = true});
}

TEST_CASE("a pod that holds much file cache gives way to one whose working set is larger") {
  Node node;
  node.add(pod("cache"), 100, 5);
  node.add(pod("hog"), 60, 58);
  const auto usage = node.decide();
  CHECK(node.read == std::vector<std::size_t>{0, 1});
  CHECK(node.first(usage)->pod->name == "hog");
}

TEST_CASE("who cannot hold enough to win is not looked at") {
  Node node;
  for (int i = 0; i < 1000; ++i) node.add(pod("small"), 10, 10);
  node.add(pod("hog"), 50'000, 40'000);
  std::ranges::rotate(node.order, node.order.end() - 1);  // it was large before
  node.together = node.sum();
  const auto usage = node.decide();
  CHECK(node.looked_at.size() == 8);
  CHECK(node.read == std::vector<std::size_t>{1000});
  CHECK(usage[999] == PodUsage{.working_set = 993 * 10, .at_most = true});

  SUBCASE("but a pod of a lower priority needs to be over its request only") {
    auto low = pod("low");
    low.priority = -1;
    node.add(low, 10, 10);
    node.together = node.sum();
    (void)node.decide();
    CHECK(node.looked_at.size() == 1002);
    CHECK(node.first(node.decide())->pod->name == "low");
  }
  SUBCASE("and everybody is where nobody knows what all hold together") {
    node.together.reset();
    (void)node.decide();
    CHECK(node.looked_at.size() == 1001);
  }
  SUBCASE("or where that does not count the pods") {
    node.together = 100;
    (void)node.decide();
    CHECK(node.looked_at.size() == 1001);
  }
  SUBCASE("or where the order was wrong") {
    std::ranges::reverse(node.order);
    (void)node.decide();
    CHECK(node.looked_at.size() == 1001);
    CHECK(node.first(node.decide())->pod->name == "hog");
  }
}

TEST_CASE("a candidate that may go instead of an unlisted pod is read also behind the first eight") {
  Node node;
  node.add(pod("new"), 500, 500, Eligibility::unlisted);
  for (int i = 0; i < 6; ++i) node.add(pod("critical"), 400, 400, Eligibility::excluded);
  node.add(pod("cache"), 350, 240);
  auto instead = pod("instead");
  instead.priority = 100;
  node.add(instead, 300, 300);
  node.together = node.sum();
  const auto usage = node.decide();
  REQUIRE(usage.back());
  CHECK_FALSE(usage.back()->at_most);
}

TEST_CASE("of many pods that hold more than the hog together so many are read that the rest holds less") {
  Node node;
  node.add(pod("hog"), 5'000, 4'000);
  for (int i = 0; i < 1000; ++i) node.add(pod("small"), 10, 10);
  node.together = node.sum();
  const auto usage = node.decide();
  CHECK(node.looked_at.size() == 8 + 10 * 64 + 16);  // 600 of the small ones would do; at last the 16 largest again
  CHECK(node.read == std::vector<std::size_t>{0});
  CHECK(node.first(usage)->pod->name == "hog");
  CHECK(usage[1000] == PodUsage{.working_set = 353 * 10, .at_most = true});

  SUBCASE("also where they grow meanwhile") {
    node.together = *node.together + 1'000;
    (void)node.decide();
    CHECK(node.looked_at.size() == 8 + 11 * 64 + 16);
  }
  SUBCASE("also where one that was large gives all of it back meanwhile, and the last one has become large") {
    node.add(pod("ends"), 10'000, 10'000, Eligibility::excluded);
    std::ranges::rotate(node.order, node.order.end() - 1);
    node.add(pod("last"), 4'500, 4'500);
    node.together = node.sum();
    node.meanwhile = [&] {
      node.held[1001] = 0;
      *node.together -= 10'000;
    };
    CHECK(node.first(node.decide())->pod->name == "last");
  }
  SUBCASE("also where that has grown since the order was made") {
    for (int i = 0; i < 16; ++i) node.add(pod("middle"), 11, 11);
    std::ranges::rotate(node.order, node.order.end() - 16);
    node.add(pod("ends"), 10'000, 10'000, Eligibility::excluded);
    std::ranges::rotate(node.order.begin() + 20, node.order.end() - 1, node.order.end());
    node.add(pod("last"), 4'500, 4'500);
    node.together = node.sum();
    node.meanwhile = [&] {
      node.held[1017] = 0;
      *node.together -= 10'000;
    };
    CHECK(node.first(node.decide())->pod->name == "last");
  }
}

TEST_CASE("with an unlisted pod all are read where the rest may come first, for one of them may go instead of it") {
  Node node;
  node.add(pod("new"), 12'000, 12'000, Eligibility::unlisted);
  node.add(with_request(pod("hog"), 4'000), 5'000, 5'000);
  for (int i = 0; i < 100; ++i) node.add(with_request(pod("calm"), 6'000), 10, 10);
  node.add(with_request(pod("grown"), 6'000), 6'500, 6'500);
  node.together = node.sum();
  const auto usage = node.decide();
  CHECK_FALSE(usage.back()->at_most);
}

TEST_CASE("pods that go last are read only where nobody else may go, excluded ones never") {
  Node node;
  node.add(pod("critical"), 500, 500, Eligibility::excluded);
  node.add(pod("back"), 100, 100, Eligibility::last);
  node.add(pod("hog"), 10, 10);
  (void)node.decide();
  CHECK(node.read == std::vector<std::size_t>{2});
  node.eligibilities[2] = Eligibility::excluded;
  (void)node.decide();
  CHECK(node.read == std::vector<std::size_t>{1});
}

TEST_CASE("unlisted pods and the candidates that may go instead of them are read, wherever they stand") {
  Node node;
  node.add(pod("hog"), 100, 90);
  node.add(pod("other"), 60, 50);
  node.add(pod("new"), 10, 8, Eligibility::unlisted);
  for (int i = 0; i < 100; ++i) node.add(pod("small"), 5, 5);
  node.together = node.sum();
  const auto usage = node.decide();
  for (const std::size_t place : {0, 1, 2}) CHECK_FALSE(usage[place]->at_most);
  CHECK(usage[2]->working_set == 8);
  CHECK(node.read.size() <= 17);
}

TEST_CASE("a pod of which nothing runs decides nothing, unless it holds memory all the same") {
  Node node;
  node.add(with_priority(pod("dead"), -1), 1_MiB, 1_MiB);
  node.add(with_priority(pod("cache"), -1), 90_MiB, 1_MiB);
  node.add(pod("hog"), 80_MiB, 70_MiB);
  node.runs = {false, false, true};
  CHECK(node.first(node.decide())->pod->name == "hog");
  CHECK(node.read == std::vector<std::size_t>{1, 2});
  node.add(with_priority(pod("tmpfs"), -1), 60_MiB, 60_MiB);
  node.runs[3] = false;
  CHECK(node.first(node.decide())->pod->name == "tmpfs");
  node.eligibilities[2] = node.eligibilities[3] = Eligibility::excluded;
  CHECK_FALSE(node.first(node.decide()).has_value());
}

TEST_CASE("property: the first to go is who would go if all were read, and no number reported is too low") {
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    Random random{seed};
    auto node = any_node(random);
    std::vector<std::optional<PodUsage>> all;
    for (std::size_t i = 0; i < node.pods.size(); ++i)
      all.push_back(node.held[i] && node.working_sets[i]
                        ? std::optional(PodUsage{.working_set = node.working_sets[i], .runs = node.runs[i]})
                        : std::nullopt);
    const auto usage = node.decide();
    const auto expected = node.first(all);
    const auto found = node.first(usage);
    REQUIRE(found.has_value() == expected.has_value());
    if (found) {
      CHECK_FALSE(found->at_most);
      CHECK(found->pod == expected->pod);
      CHECK(found->usage == expected->usage);
    }
    for (std::size_t i = 0; i < usage.size(); ++i)
      if (usage[i] && node.working_sets[i]) CHECK(*usage[i]->working_set >= *node.working_sets[i]);
    auto once = node.read;
    std::ranges::sort(once);
    CHECK(std::ranges::adjacent_find(once) == once.end());
  }
}

TEST_CASE("property: as many as are asked for stand where they would if all were read") {
  for (const auto seed : fixture::seeds(2000)) {
    CAPTURE(seed);
    Random random{seed};
    auto node = any_node(random);
    for (auto& eligibility : node.eligibilities) eligibility = Eligibility::candidate;
    std::vector<std::optional<PodUsage>> all;
    for (std::size_t i = 0; i < node.pods.size(); ++i)
      all.push_back(node.held[i] && node.working_sets[i] ? std::optional(PodUsage{.working_set = node.working_sets[i]})
                                                         : std::nullopt);
    const auto count = static_cast<std::size_t>(random.between(0, 30));
    const auto usage = node.lead(count);
    const auto expected = rank(Signal::MemoryAvailable, node.pods, all, {});
    const auto found = rank(Signal::MemoryAvailable, node.pods, usage, {});
    for (std::size_t i = 0; i < std::min(count, node.pods.size()); ++i) CHECK(found[i] == expected[i]);
  }
}

}  // namespace evictd::core::deciding_usage_test
