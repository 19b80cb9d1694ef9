#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/pod.hpp"

namespace evictd::pods {

/// Adds what a sandbox's port mapping takes of the node, by the CRI's numbers: nothing where it names no port (0), or
/// one that no node has. A protocol that CRI does not know counts as TCP. Pure.
void add_host_port(std::vector<core::HostPort>& ports, std::int64_t protocol, std::int64_t port, std::string ip);

}  // namespace evictd::pods
