#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "core/node_selector.hpp"
#include "core/pod.hpp"

// The parts of a v1.PodSpec that decide on which node a pod may run. Each reader takes one key's value.
namespace evictd::pods {

/// spec.affinity, of which only nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution counts.
[[nodiscard]] Result<void> read_affinity(const config::Value& value, std::optional<core::NodeSelector>& target);

/// spec.os: its name.
[[nodiscard]] Result<void> read_os(const config::Value& value, std::string& name);

/// spec.securityContext: sysctls, supplementalGroupsPolicy, appArmorProfile.
[[nodiscard]] Result<void> read_pod_security(const config::Value& value, core::Pod& target);

/// containers[].securityContext: appArmorProfile.
[[nodiscard]] Result<void> read_container_security(const config::Value& value, core::Container& target);

/// Whether a pod uses the node's own network.
enum class Network : bool { own, hosts };

/// containers[].ports, of which only those of the node are kept. On the node's own network every port is one, as the
/// API server fills it in.
[[nodiscard]] Result<void> read_host_ports(const config::Value& value, Network network,
                                           std::vector<core::HostPort>& target);

/// Puts what decides on which node `spec` may run in the place of what `target` says of it; containers are left alone.
void take_placement(core::Pod& target, const core::Pod& spec);

}  // namespace evictd::pods
