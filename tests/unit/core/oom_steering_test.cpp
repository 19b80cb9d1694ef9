#include "core/oom_steering.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "fixture/random.hpp"

namespace evictd::core::oom_steering_test {
namespace {

using fixture::Random;
using fixture::seeds;

constexpr std::int64_t memory = 1000;  // so that a byte is a thousandth

/// The score by which the kernel goes.
int score_of(const OomPod& pod, std::optional<int> raised) {
  int highest = -2000;
  for (const auto& [bytes, adj] : pod.processes)
    highest = std::max(highest, oom_share(bytes, memory) + raised_adj(adj, raised, pod.most));
  return highest;
}

OomPod burstable(std::int64_t bytes, int adj) { return {.most = most_burstable_adj, .processes = {{bytes, adj}}}; }

OomPod any_pod(Random& random) {
  OomPod pod{.most = random.pick({most_burstable_adj, most_adj}), .processes = {}};
  for (auto left = random.between(0, 3); left > 0; --left)
    pod.processes.push_back(
        {random.between(0, 400),
         static_cast<int>(random.pick<std::int64_t>({-998, 1000, random.between(2, 999), random.between(2, 100)}))});
  return pod;
}

}  // namespace

TEST_CASE("shares are thousandths, and none is more than all") {
  CHECK(oom_share(999, 1'000'000) == 0);
  CHECK(oom_share(1500, 1'000'000) == 1);
  CHECK(oom_share(5, 4) == 1000);
  CHECK(oom_share(-5, 4) == 0);
  CHECK(oom_share(5, 0) == 0);
  CHECK(oom_share(std::int64_t{1} << 62, std::int64_t{1} << 62) == 1000);
}

TEST_CASE("who has asked for more keeps it, and who is protected is left alone") {
  CHECK(raised_adj(100, 700, 999) == 700);
  CHECK(raised_adj(800, 700, 999) == 800);
  CHECK(raised_adj(100, 2000, 999) == 999);
  CHECK(raised_adj(1000, 700, 999) == 1000);
  CHECK(raised_adj(-998, 700, 999) == -998);
  CHECK(raised_adj(0, std::nullopt, 999) == 0);
}

TEST_CASE("a pod that goes first by evictd is raised before one that the kernel would take") {
  // The first has 50 + 600, the second 300 + 700.
  const std::vector<OomPod> pods{burstable(50, 600), burstable(300, 700)};
  const auto raised = steer(pods, 0, memory);
  CHECK(raised[0] == 955);  // 1005 in all
  CHECK_FALSE(raised[1]);
  CHECK(score_of(pods[0], raised[0]) == score_of(pods[1], raised[1]) + steering_gap);
}

TEST_CASE("a pod is raised to the next lower value where one is taken, and the others stay behind it") {
  std::vector<OomPod> pods{burstable(5, 600), burstable(4, 500)};
  pods[0].taken = {999, 998};
  const auto raised = steer(pods, 1400, memory);
  CHECK(raised[0] == 997);
  CHECK(score_of(pods[1], raised[1]) == score_of(pods[0], raised[0]) - steering_gap);
}

TEST_CASE("whom the kernel would take first anyway is left as it is") {
  CHECK_FALSE(steer(std::vector{burstable(300, 900)}, 500, memory)[0]);
  CHECK(steer(std::vector<OomPod>{}, 500, memory).empty());
}

TEST_CASE("behind the best effort pods that stand behind it a burstable one stays what it is") {
  const std::vector<OomPod> pods{burstable(5, 600), burstable(4, 500)};
  const auto raised = steer(pods, 1400, memory);
  CHECK(raised[0] == most_burstable_adj);
  CHECK(score_of(pods[1], raised[1]) == score_of(pods[0], raised[0]) - steering_gap);
}

TEST_CASE("whatever pods there are: nothing is lowered, classes are kept, and no pod is raised past one before it") {
  for (const auto seed : seeds(2000)) {
    CAPTURE(seed);
    Random random{seed};
    std::vector<OomPod> pods;
    for (auto left = random.between(0, 8); left > 0; --left) pods.push_back(any_pod(random));
    const auto behind = static_cast<int>(random.between(0, 1500));
    const auto raised = steer(pods, behind, memory);
    REQUIRE(raised.size() == pods.size());
    for (std::size_t i = 0; i < pods.size(); ++i) {
      for (const auto& process : pods[i].processes) {
        const auto value = raised_adj(process.adj, raised[i], pods[i].most);
        CHECK(value >= process.adj);
        CHECK((value == process.adj || value <= pods[i].most));
        CHECK((process.adj >= 0 || value == process.adj));
      }
      const auto able = [](const OomPod& pod) {
        return std::ranges::any_of(pod.processes, [](const auto& process) { return process.adj >= 0; });
      };
      for (std::size_t j = i + 1; j < pods.size(); ++j)
        if (able(pods[i]) && able(pods[j]))
          CHECK(score_of(pods[j], raised[j]) <=
                std::max(score_of(pods[j], std::nullopt), score_of(pods[i], raised[i]) - steering_gap));
    }
  }
}

TEST_CASE("where there is room the order is evictd's, and all go before those behind") {
  for (const auto seed : seeds(2000)) {
    CAPTURE(seed);
    Random random{seed};
    std::vector<OomPod> pods;
    for (auto left = random.between(1, 8); left > 0; --left)
      pods.push_back(burstable(random.between(0, 200), static_cast<int>(random.between(2, 600))));
    const auto behind = static_cast<int>(random.between(0, 900));  // 999 is 9 gaps above 950
    const auto raised = steer(pods, behind, memory);
    int next = behind;
    for (auto i = pods.size(); i-- > 0;) {
      CHECK(score_of(pods[i], raised[i]) >= next + steering_gap);
      next = score_of(pods[i], raised[i]);
    }
  }
}

}  // namespace evictd::core::oom_steering_test
