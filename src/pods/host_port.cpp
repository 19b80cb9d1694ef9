#include "pods/host_port.hpp"

#include <string_view>
#include <utility>

namespace evictd::pods {
namespace {

// Of CRI's enum Protocol, as numbers: a verbose status has them in its JSON, and reading that needs no generated code.
constexpr std::int64_t udp = 1;
constexpr std::int64_t sctp = 2;

constexpr std::int64_t last_port = 65'535;

std::string_view protocol_name(std::int64_t protocol) {
  switch (protocol) {
    case udp: return "UDP";
    case sctp: return "SCTP";
    default: return "TCP";
  }
}

}  // namespace

void add_host_port(std::vector<core::HostPort>& ports, std::int64_t protocol, std::int64_t port, std::string ip) {
  if (port < 1 || port > last_port) return;
  ports.push_back(
      {.ip = std::move(ip), .protocol = std::string(protocol_name(protocol)), .port = static_cast<std::int32_t>(port)});
}

}  // namespace evictd::pods
