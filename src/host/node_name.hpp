#pragma once
#include <string>

namespace evictd::host {

/// What the cluster calls this node: as configured, else $NODE_NAME, else the host's name in lower case and without
/// blanks around it. (kubelet: nodeutil.GetHostname)
[[nodiscard]] std::string node_name(const std::string& configured);

}  // namespace evictd::host
