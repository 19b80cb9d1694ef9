#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/eviction_order.hpp"
#include "fixture/pods.hpp"
#include "fixture/random.hpp"

namespace evictd::core::eviction_order_property_test {
namespace {

using fixture::Random;
using fixture::seeds;

struct World {
  PodList pods;
  std::vector<std::optional<PodUsage>> usage;
  FilesystemLayout layout;
};

PodUsage any_usage(Random& random) {
  PodUsage usage{.working_set = random.between(0, 5), .processes = random.between(0, 5)};
  usage.containers = {{.name = "main",
                       .rootfs = {.bytes = random.between(0, 5), .inodes = random.between(0, 5)},
                       .logs = {.bytes = random.between(0, 5)}}};
  usage.volumes["cache"] = {.bytes = random.between(0, 5)};
  return usage;
}

/// Few different numbers, so that ties are many.
World any_world(Random& random) {
  World world{.pods = {}, .usage = {}, .layout = {.dedicated_imagefs = random.chance(50), .split = random.chance(20)}};
  for (auto left = random.between(0, 40); left > 0; --left) {
    auto pod = fixture::pod("p" + std::to_string(left));
    if (random.chance(70)) pod.priority = static_cast<std::int32_t>(random.between(-1, 1));
    for (const auto* resource : {"memory", "ephemeral-storage"})
      if (random.chance(50)) pod.containers[0].resources.requests[resource] = Quantity::bytes(random.between(0, 5));
    pod.volumes = {fixture::empty_dir("cache")};
    world.pods.push_back(std::make_shared<const Pod>(pod));
    world.usage.push_back(random.chance(80) ? std::optional(any_usage(random)) : std::nullopt);
  }
  return world;
}

/// All that a place in the ranking may depend on.
auto key(const RankedPod& ranked) {
  return std::tuple{ranked.pod->priority.value_or(0), ranked.has_stats, ranked.usage, ranked.request};
}

std::ptrdiff_t position(const PodList& pods, const PodPtr& pod) { return std::ranges::find(pods, pod) - pods.begin(); }

}  // namespace

TEST_CASE("property: a ranking names every pod once, and equal pods keep their order") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    Random random{seed};
    const auto world = any_world(random);
    for (const auto signal : all_signals()) {
      CAPTURE(name(signal));
      const auto ranking = rank(signal, world.pods, world.usage, world.layout);
      std::set<PodPtr> named;
      for (const auto& ranked : ranking) named.insert(ranked.pod);
      CHECK(ranking.size() == world.pods.size());
      CHECK(named == std::set<PodPtr>(world.pods.begin(), world.pods.end()));
      for (std::size_t i = 1; i < ranking.size(); ++i)
        if (key(ranking[i - 1]) == key(ranking[i]))
          CHECK(position(world.pods, ranking[i - 1].pod) < position(world.pods, ranking[i].pod));
    }
  }
}

TEST_CASE("property: whoever goes before another does so by the first number that tells them apart") {
  for (const auto seed : seeds(300)) {
    CAPTURE(seed);
    Random random{seed};
    const auto world = any_world(random);
    for (const auto signal : all_signals()) {
      CAPTURE(name(signal));
      const auto ranking = rank(signal, world.pods, world.usage, world.layout);
      const bool inodes = rank_by(signal) == RankBy::Inodes;
      for (std::size_t i = 1; i < ranking.size(); ++i) {
        const auto& a = ranking[i - 1];
        const auto& b = ranking[i];
        const auto priority = [](const RankedPod& ranked) { return ranked.pod->priority.value_or(0); };
        if (signal == Signal::PidAvailable) {
          CHECK(std::tuple{priority(a), a.has_stats, -a.usage} <= std::tuple{priority(b), b.has_stats, -b.usage});
          continue;
        }
        const auto within = [&](const RankedPod& r) { return r.has_stats && r.usage <= (inodes ? 0 : r.request); };
        const auto short_by = [](const RankedPod& r) { return r.has_stats ? r.request - r.usage : 0; };
        CHECK(std::tuple{a.has_stats, within(a), priority(a), short_by(a)} <=
              std::tuple{b.has_stats, within(b), priority(b), short_by(b)});
      }
    }
  }
}

}  // namespace evictd::core::eviction_order_property_test
