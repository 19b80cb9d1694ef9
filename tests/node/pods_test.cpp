// Pods where a kubelet with the systemd driver has them.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "node.hpp"
#include "testbed/wait.hpp"

namespace node_suite::pods_test {

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::RankedPod;
using Lines = std::vector<std::string>;

namespace {

const RankedPod& place_of(const evictd::v1::RankPodsResponse& ranking, const std::string& uid) {
  const auto found = std::ranges::find_if(ranking.pods(), [&](const auto& each) { return each.pod().uid() == uid; });
  REQUIRE(found != ranking.pods().end());
  return *found;
}

}  // namespace

TEST_CASE("pods in slices of each class are found by them, measured and ranked, a static pod's hash as well") {
  Node node;
  const auto guaranteed = node.run(pod("guaranteed", QosClass::Guaranteed, {"hold", "24Mi"}));
  const auto burstable = node.run(pod("burstable", QosClass::Burstable, {"hold", "48Mi"}));
  const auto greedy = node.run(pod("best-effort", QosClass::BestEffort, {"hold", "96Mi"}));
  auto spec = pod("static-node", QosClass::Burstable, {"hold", "12Mi"});
  spec.uid = "5c1ed6c4c1d6f4dfd1b2ea5f6c5b8a31";  // as the kubelet makes it of a file: no dashes
  const auto hashed = node.run(spec);

  const auto measured = [&](const testbed::RunningPod& pod, std::int64_t mebibytes) {
    const auto usage = place_of(node.ranking(), pod.uid).usage();
    return usage >= mebibytes * mebi && usage < (mebibytes + 16) * mebi;
  };
  testbed::wait_until("the pods are measured", 60s, [&] {
    return measured(guaranteed, 24) && measured(burstable, 48) && measured(greedy, 96) && measured(hashed, 12);
  });

  const auto ranking = node.ranking();
  CHECK(place_of(ranking, guaranteed.uid).qos_class() == "Guaranteed");
  CHECK(place_of(ranking, burstable.uid).qos_class() == "Burstable");
  CHECK(place_of(ranking, greedy.uid).qos_class() == "BestEffort");
  CHECK(place_of(ranking, hashed.uid).qos_class() == "Burstable");
  Lines order;
  for (const auto& each : ranking.pods()) order.push_back(each.pod().name());
  CHECK(order.front() == "best-effort");
}

}  // namespace node_suite::pods_test
