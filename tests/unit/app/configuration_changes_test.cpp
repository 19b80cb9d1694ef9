#include "app/configuration_changes.hpp"

#include <doctest/doctest.h>

namespace evictd::app::configuration_changes_test {

TEST_CASE("what changed is told with what of it waits for a restart") {
  const WrittenSettings start;
  auto louder = start;
  louder.agent.log.level = config::LogLevel::Debug;
  auto thresholds = start;
  thresholds.kubelet.eviction.soft["memory.available"] = "1Gi";
  auto other = louder;
  other.kubelet.static_pod_path = "/manifests";

  auto runtime = start;
  runtime.kubelet.container_runtime_endpoint = "unix:///run/k3s/containerd/containerd.sock";

  CHECK(changes_between(start, thresholds, start).lines.empty());
  CHECK(changes_between(start, runtime, start).lines.empty());
  CHECK(changes_between(start, louder, start).message() == "the configuration changed: log.level: info -> debug");
  CHECK(changes_between(start, other, start).message() ==
        "the configuration changed: log.level: info -> debug; KubeletConfiguration: staticPodPath; all but log.level "
        "takes effect when evictd restarts");
  auto slower = start;
  slower.agent.cri.timeout *= 2;
  CHECK(changes_between(start, slower, start).needs_restart);
}

TEST_CASE("what is put back is in force, whatever else waits for a restart") {
  const WrittenSettings start;
  auto one = start;
  one.kubelet.static_pod_path = "/manifests";
  auto both = one;
  both.agent.cri.timeout *= 2;
  CHECK(changes_between(both, one, start).lines.size() == 1);
  CHECK_FALSE(changes_between(both, one, start).needs_restart);
  CHECK_FALSE(changes_between(one, start, start).needs_restart);
  CHECK(changes_between(one, start, one).needs_restart);
}

}  // namespace evictd::app::configuration_changes_test
