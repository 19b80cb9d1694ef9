#include "admission/host_ports.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

namespace evictd::admission {
namespace {

/// A port as it sorts: by number, protocol and address, of which all of them ("") come first. Its texts are the pod's.
struct TakenPort {
  std::int32_t port;
  std::string_view protocol;
  std::string_view ip;

  friend auto operator<=>(const TakenPort&, const TakenPort&) = default;
};

TakenPort taken_port(const core::HostPort& port) {
  return {port.port, port.protocol, port.ip == "0.0.0.0" ? std::string_view{} : port.ip};
}

std::vector<TakenPort> ports_of(const core::Pod& pod) {
  std::vector<TakenPort> ports;
  const auto add = [&](const std::vector<core::HostPort>& some) {
    for (const auto& port : some)
      if (port.port > 0) ports.push_back(taken_port(port));
  };
  for (const auto& container : pod.init_containers)
    if (container.restart_always) add(container.host_ports);
  for (const auto& container : pod.containers) add(container.host_ports);
  add(pod.host_ports);
  return ports;
}

/// Whether one of the sorted ports is this one, on the same address or where either takes all.
bool has_one(const std::vector<TakenPort>& sorted, const TakenPort& port) {
  const auto first = std::ranges::lower_bound(sorted, TakenPort{port.port, port.protocol, {}});
  if (first == sorted.end() || first->port != port.port || first->protocol != port.protocol) return false;
  return port.ip.empty() || first->ip.empty() || std::binary_search(first, sorted.end(), port);
}

}  // namespace

bool has_port_conflict(const core::Pod& pod, const core::PodList& others) {
  auto wanted = ports_of(pod);
  if (wanted.empty()) return false;
  std::ranges::sort(wanted);
  return std::ranges::any_of(others, [&](const core::PodPtr& other) {
    return std::ranges::any_of(ports_of(*other), [&](const TakenPort& port) { return has_one(wanted, port); });
  });
}

}  // namespace evictd::admission
