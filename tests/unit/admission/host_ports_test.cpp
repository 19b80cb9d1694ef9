#include "admission/host_ports.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "fixture/pods.hpp"

namespace evictd::admission::host_ports_test {
namespace {

using core::HostPort;

core::Pod with_port(HostPort port) {
  auto pod = fixture::pod("a");
  pod.containers[0].host_ports = {std::move(port)};
  return pod;
}

bool conflict(const HostPort& wanted, const HostPort& taken) {
  return has_port_conflict(with_port(wanted), fixture::pods({fixture::pod("b"), with_port(taken)}));
}

}  // namespace

TEST_CASE("pods without ports of the node never conflict") {
  CHECK_FALSE(has_port_conflict(fixture::pod("a"), fixture::pods({with_port({.port = 80})})));
  CHECK_FALSE(has_port_conflict(with_port({.port = 80}), {}));
  CHECK_FALSE(conflict({.port = 0}, {.port = 0}));
}

TEST_CASE("a port conflicts with the same number and protocol on the same address, or where either takes all") {
  struct Case {
    HostPort wanted;
    HostPort taken;
    bool expected;
  };
  const std::vector<Case> cases{
      {{.port = 80}, {.port = 80}, true},
      {{.port = 80}, {.port = 81}, false},
      {{.protocol = "UDP", .port = 80}, {.port = 80}, false},
      {{.ip = "0.0.0.0", .port = 80}, {.ip = "127.0.0.1", .port = 80}, true},
      {{.ip = "127.0.0.1", .port = 80}, {.ip = "0.0.0.0", .port = 80}, true},
      {{.ip = "127.0.0.1", .port = 80}, {.port = 80}, true},
      {{.port = 80}, {.ip = "::1", .port = 80}, true},
      {{.ip = "127.0.0.1", .port = 80}, {.ip = "127.0.0.1", .port = 80}, true},
      {{.ip = "127.0.0.1", .port = 80}, {.ip = "127.0.0.2", .port = 80}, false},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    CHECK(conflict(cases[i].wanted, cases[i].taken) == cases[i].expected);
  }
}

TEST_CASE("sidecars' ports count, those of other init containers do not") {
  auto init = fixture::pod("b");
  init.init_containers = {fixture::container("setup")};
  init.init_containers[0].host_ports = {{.port = 80}};
  CHECK_FALSE(has_port_conflict(with_port({.port = 80}), fixture::pods({init})));
  CHECK_FALSE(has_port_conflict(init, fixture::pods({with_port({.port = 80})})));
  init.init_containers[0].restart_always = true;
  CHECK(has_port_conflict(with_port({.port = 80}), fixture::pods({init})));
  CHECK(has_port_conflict(init, fixture::pods({with_port({.port = 80})})));
}

TEST_CASE("ports of which nobody says whose they are count as any container's") {
  auto listed = fixture::pod("a");
  listed.host_ports = {{.port = 80}};
  CHECK(has_port_conflict(with_port({.port = 80}), fixture::pods({listed})));
  CHECK(has_port_conflict(listed, fixture::pods({with_port({.port = 80})})));
  CHECK_FALSE(has_port_conflict(with_port({.port = 81}), fixture::pods({listed})));
}

TEST_CASE("of several ports any that both take is a conflict") {
  auto wants = fixture::pod("a");
  wants.containers[0].host_ports = {{.port = 90}, {.ip = "10.0.0.2", .port = 80}, {.protocol = "UDP", .port = 80}};
  CHECK(has_port_conflict(wants, fixture::pods({with_port({.ip = "10.0.0.2", .port = 80})})));
  CHECK(has_port_conflict(wants, fixture::pods({with_port({.port = 81}), with_port({.port = 90})})));
  CHECK(has_port_conflict(wants, fixture::pods({with_port({.ip = "::1", .protocol = "UDP", .port = 80})})));
  CHECK_FALSE(has_port_conflict(wants, fixture::pods({with_port({.ip = "10.0.0.1", .port = 80})})));
  CHECK_FALSE(has_port_conflict(wants, fixture::pods({with_port({.protocol = "SCTP", .port = 80})})));
}

TEST_CASE("pods that take one port on thousands of addresses each are compared without going through all pairs") {
  const auto on_addresses = [](const std::string& prefix) {
    auto pod = fixture::pod(prefix);
    for (int i = 0; i < 20'000; ++i)
      pod.containers[0].host_ports.push_back({.ip = prefix + std::to_string(i), .port = 80});
    return pod;
  };
  const auto wants = on_addresses("a");
  const auto others = fixture::pods({on_addresses("b"), with_port({.ip = "a7", .port = 80})});
  const auto begin = std::clock();
  CHECK_FALSE(has_port_conflict(wants, {others[0]}));
  CHECK(has_port_conflict(wants, others));
  CHECK(std::clock() - begin < 5 * CLOCKS_PER_SEC);  // all pairs take half a minute
}

}  // namespace evictd::admission::host_ports_test
