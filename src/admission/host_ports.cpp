#include "admission/host_ports.hpp"

#include <algorithm>
#include <vector>

namespace evictd::admission {
namespace {

using core::HostPort;

std::vector<HostPort> ports_of(const core::Pod& pod) {
  std::vector<HostPort> ports;
  const auto add = [&](const core::Container& container) {
    for (const auto& port : container.host_ports)
      if (port.port > 0) ports.push_back(port);
  };
  for (const auto& container : pod.init_containers)
    if (container.restart_always) add(container);
  for (const auto& container : pod.containers) add(container);
  return ports;
}

bool is_any_address(const HostPort& port) { return port.ip.empty() || port.ip == "0.0.0.0"; }

bool conflict(const HostPort& a, const HostPort& b) {
  if (a.port != b.port || a.protocol != b.protocol) return false;
  return is_any_address(a) || is_any_address(b) || a.ip == b.ip;
}

}  // namespace

bool has_port_conflict(const core::Pod& pod, const core::PodList& others) {
  const auto wanted = ports_of(pod);
  if (wanted.empty()) return false;
  return std::ranges::any_of(others, [&](const core::PodPtr& other) {
    const auto taken = ports_of(*other);
    return std::ranges::any_of(wanted, [&](const HostPort& port) {
      return std::ranges::any_of(taken, [&](const HostPort& its) { return conflict(port, its); });
    });
  });
}

}  // namespace evictd::admission
