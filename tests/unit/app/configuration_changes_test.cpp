#include "app/configuration_changes.hpp"

#include <doctest/doctest.h>

namespace evictd::app::configuration_changes_test {

TEST_CASE("what changed is told with what of it waits for a restart") {
  const config::AgentConfiguration agent;
  const config::KubeletConfiguration kubelet;
  auto louder = agent;
  louder.log.level = config::LogLevel::Debug;
  auto thresholds = kubelet;
  thresholds.eviction.soft["memory.available"] = "1Gi";
  auto other = kubelet;
  other.static_pod_path = "/manifests";

  auto runtime = kubelet;
  runtime.container_runtime_endpoint = "unix:///run/k3s/containerd/containerd.sock";

  CHECK(changes_between(agent, agent, kubelet, thresholds).lines.empty());
  CHECK(changes_between(agent, agent, kubelet, runtime).lines.empty());
  CHECK(changes_between(agent, louder, kubelet, kubelet).message() ==
        "the configuration changed: log.level: info -> debug");
  CHECK(changes_between(agent, louder, kubelet, other).message() ==
        "the configuration changed: log.level: info -> debug; KubeletConfiguration: staticPodPath; all but log.level "
        "takes effect when evictd restarts");
  louder.log = {};
  louder.cri.timeout *= 2;
  CHECK(changes_between(agent, louder, kubelet, kubelet).needs_restart);
}

}  // namespace evictd::app::configuration_changes_test
