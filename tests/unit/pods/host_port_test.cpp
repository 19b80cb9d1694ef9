#include "pods/host_port.hpp"

#include <api.pb.h>
#include <doctest/doctest.h>

using namespace evictd;

namespace {

std::vector<core::HostPort> mapped(std::int64_t protocol, std::int64_t port) {
  std::vector<core::HostPort> ports;
  pods::add_host_port(ports, protocol, port, "10.0.0.1");
  return ports;
}

}  // namespace

TEST_CASE("a mapped port has the protocol that CRI's number means") {
  const auto protocol = [](std::int64_t number) { return mapped(number, 53).at(0).protocol; };
  CHECK(protocol(runtime::v1::TCP) == "TCP");
  CHECK(protocol(runtime::v1::UDP) == "UDP");
  CHECK(protocol(runtime::v1::SCTP) == "SCTP");
  CHECK(protocol(99) == "TCP");
}

TEST_CASE("a mapping takes only a port that a node has") {
  CHECK(mapped(runtime::v1::TCP, 1).size() == 1);
  CHECK(mapped(runtime::v1::TCP, 65'535).size() == 1);
  for (const auto none : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{65'536}, std::int64_t{1} << 40})
    CHECK(mapped(runtime::v1::TCP, none).empty());
}
