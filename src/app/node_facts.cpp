#include "app/node_facts.hpp"

#include <unistd.h>

#include <limits>
#include <utility>

#include "admission/own_node.hpp"
#include "config/chain_settings.hpp"
#include "core/pod.hpp"
#include "core/quantity.hpp"
#include "host/kernel_version.hpp"
#include "host/node_name.hpp"
#include "kube/node_mirror.hpp"
#include "node/app_armor.hpp"
#include "node/machine_topology.hpp"
#include "os/log.hpp"

namespace evictd::app {

NodeFacts::NodeFacts(const Configuration& configuration, std::int64_t memory_capacity, const kube::NodeMirror* cluster,
                     const std::filesystem::path& sys)
    : configuration_{configuration},
      memory_capacity_{memory_capacity},
      cluster_{cluster},
      host_{.kernel_version = host::kernel_version(), .app_armor = node::read_app_armor("/")} {
  for (const auto& device : configuration.agent.admission.devices) host_.configured_devices.insert(device.resource);
  const auto huge_pages = node::read_huge_pages(sys);
  if (!huge_pages) {
    os::log_warning("huge pages: {}; no pod is admitted that asks for them", huge_pages.error().message);
    return;
  }
  for (const auto& [resource, bytes] : *huge_pages) huge_pages_.emplace(resource, core::Quantity::bytes(bytes));
}

admission::NodeSnapshot NodeFacts::snapshot(std::optional<std::int64_t> disk_capacity) const {
  auto snapshot = host_;
  if (cluster_ != nullptr && cluster_->node())
    snapshot.node = cluster_->node();
  else
    snapshot.node = described_by_itself(disk_capacity);
  return snapshot;
}

core::Node NodeFacts::described_by_itself(std::optional<std::int64_t> disk_capacity) const {
  const auto& agent = configuration_.agent;
  const auto& kubelet = configuration_.kubelet;
  auto reserved = config::reservations(kubelet);
  core::ResourceList capacity{{"cpu", core::Quantity::count(::sysconf(_SC_NPROCESSORS_ONLN))},
                              {"memory", core::Quantity::bytes(memory_capacity_)}};
  constexpr auto unlimited = std::numeric_limits<std::int64_t>::max();
  capacity.emplace("ephemeral-storage", core::Quantity::bytes(disk_capacity.value_or(unlimited)));
  capacity.insert(huge_pages_.begin(), huge_pages_.end());
  return admission::own_node({.name = host::node_name(agent.kubernetes.node_name),
                              .capacity = std::move(capacity),
                              .kube_reserved = std::move(reserved.kube),
                              .system_reserved = std::move(reserved.system),
                              .thresholds = configuration_.policy.thresholds,
                              .max_pods = kubelet.max_pods,
                              .devices = agent.admission.devices,
                              .labels = agent.admission.node_labels,
                              .taints = kubelet.register_with_taints});
}

}  // namespace evictd::app
