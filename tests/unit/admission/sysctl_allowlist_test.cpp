#include "admission/sysctl_allowlist.hpp"

#include <doctest/doctest.h>

#include "fixture/result.hpp"

namespace evictd::admission::sysctl_allowlist_test {
namespace {

using fixture::error_of;
using fixture::value_of;

constexpr KernelVersion new_kernel{6, 1};

/// What stands against a sysctl; "" where nothing does.
std::string objection(std::string_view sysctl, const std::vector<std::string>& allowed = {},
                      std::optional<KernelVersion> kernel = new_kernel, HostNamespaces shared = {}) {
  return value_of(SysctlAllowlist::make(allowed)).objection(sysctl, shared, kernel).value_or("");
}

std::string error(const std::string& pattern) { return error_of(SysctlAllowlist::make({pattern})); }

}  // namespace

TEST_CASE("a name whose first separator is a slash has slashes and dots swapped") {
  CHECK(with_dots("net/ipv4/tcp_syncookies") == "net.ipv4.tcp_syncookies");
  CHECK(with_dots("net/ipv4/conf/eno2.100/rp_filter") == "net.ipv4.conf.eno2/100.rp_filter");
  CHECK(with_dots("net.ipv4.conf.eno2/100.rp_filter") == "net.ipv4.conf.eno2/100.rp_filter");
  CHECK(with_dots("kernel") == "kernel");
  CHECK(with_dots("") == "");
}

TEST_CASE("safe sysctls are allowed with kernels that have given them a namespace") {
  struct Case {
    const char* name;
    KernelVersion since;
  };
  for (const auto& [name, since] :
       {Case{"net.ipv4.ip_local_reserved_ports", {3, 16}}, Case{"net.ipv4.tcp_keepalive_time", {4, 5}},
        Case{"net.ipv4.tcp_fin_timeout", {4, 6}}, Case{"net.ipv4.tcp_keepalive_intvl", {4, 5}},
        Case{"net.ipv4.tcp_keepalive_probes", {4, 5}}, Case{"net.ipv4.tcp_rmem", {4, 15}},
        Case{"net.ipv4.tcp_wmem", {4, 15}}}) {
    CAPTURE(name);
    const auto refused = "\"" + std::string(name) + "\" not allowlisted";
    CHECK(objection(name, {}, since) == "");
    CHECK(objection(name, {}, KernelVersion{since.major, since.minor - 1}) == refused);
    CHECK(objection(name, {}, std::nullopt) == refused);
  }
}

TEST_CASE("some are safe with any kernel") {
  for (const auto* name : {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
                           "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"}) {
    CAPTURE(name);
    CHECK(objection(name, {}, std::nullopt) == "");
    CHECK(objection(name, {}, KernelVersion{2, 6}) == "");
  }
}

TEST_CASE("others are allowed by name or by prefix") {
  CHECK(objection("net.core.somaxconn") == "\"net.core.somaxconn\" not allowlisted");
  CHECK(objection("net.core.somaxconn", {"net.core.somaxconn"}) == "");
  CHECK(objection("net.core.somaxconn", {"net.core.*"}) == "");
  CHECK(objection("net.core.somaxconn", {"net/core/somaxconn"}) == "");
  CHECK(objection("net/core/somaxconn", {"net.core.*"}) == "");
  CHECK(objection("net.core.somaxconn", {"net.ipv4.*", "kernel.msg*"}) == "\"net.core.somaxconn\" not allowlisted");
  CHECK(objection("kernel.msgmax", {"kernel.msg*"}) == "");
  CHECK(objection("net.core.somaxconn.x", {"net.core.somaxconn"}) == "\"net.core.somaxconn.x\" not allowlisted");
  // What is safe only with newer kernels may be allowed all the same.
  CHECK(objection("net.ipv4.tcp_rmem", {"net.ipv4.tcp_*"}, std::nullopt) == "");
}

TEST_CASE("a name is told with dots, and quoted") {
  CHECK(objection("net/core/somaxconn") == "\"net.core.somaxconn\" not allowlisted");
  CHECK(objection("kernel.\"x\"") == R"("kernel.\"x\"" not allowlisted)");
}

TEST_CASE("a pod cannot set what it shares with the host") {
  const std::vector<std::string> all{"net.*", "kernel.sem", "kernel.shm*", "kernel.msg*", "fs.mqueue.*"};
  const HostNamespaces network{.network = true};
  const HostNamespaces ipc{.ipc = true};
  CHECK(objection("net.ipv4.tcp_syncookies", {}, new_kernel, network) ==
        "\"net.ipv4.tcp_syncookies\" not allowed with host net enabled");
  CHECK(objection("net.core.somaxconn", all, new_kernel, network) ==
        "\"net.core.somaxconn\" not allowed with host net enabled");
  CHECK(objection("net.core.somaxconn", all, new_kernel, ipc) == "");
  for (const auto* name :
       {"kernel.sem", "kernel.shm_rmid_forced", "kernel.shmmax", "kernel.msgmax", "fs.mqueue.msg_max"}) {
    CAPTURE(name);
    CHECK(objection(name, all, new_kernel, ipc) == "\"" + std::string(name) + "\" not allowed with host ipc enabled");
    CHECK(objection(name, all, new_kernel, network) == "");
  }
}

TEST_CASE("a pattern that the kernel gives no namespace is an error") {
  CHECK(error("kernel.pid_max") == "the sysctl \"kernel.pid_max\" are not known to be namespaced");
  CHECK(error("vm.*") == "the sysctls \"vm.*\" are not known to be namespaced");
  CHECK(error("*") == "the sysctls \"*\" are not known to be namespaced");
  CHECK(error("net*") == "the sysctls \"net*\" are not known to be namespaced");
  CHECK(error("kernel.sem*") == "no error");  // the prefix is the name
  CHECK(error("kernel.hostname") == "the sysctl \"kernel.hostname\" are not known to be namespaced");
  CHECK(error("kernel.domainname") == "the sysctl \"kernel.domainname\" are not known to be namespaced");
  CHECK(error("kernel.domain*") == "the sysctls \"kernel.domain*\" are not known to be namespaced");
}

TEST_CASE("shared memory and messages are known by their exact names, and as the stems of a *") {
  for (const auto* known :
       {"kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.msgmax",
        "kernel.msgmnb", "kernel.msgmni", "kernel.shm*", "kernel.msg*", "kernel/shmmax", "kernel.shmmax*"}) {
    CAPTURE(known);
    CHECK(error(known) == "no error");
  }
  for (const auto* name : {"kernel.shmmax2", "kernel.msg_next_id", "kernel.shm.max", "fs.mqueue", "kernel.se"}) {
    CAPTURE(name);
    CHECK(error(name) == "the sysctl \"" + std::string(name) + "\" are not known to be namespaced");
  }
  for (const auto* prefix : {"kernel.shm_*", "kernel.shmm*", "kernel.msgm*", "kernel.s*", "fs.mqueue*"}) {
    CAPTURE(prefix);
    CHECK(error(prefix) == "the sysctls \"" + std::string(prefix) + "\" are not known to be namespaced");
  }
}

TEST_CASE("a malformed pattern is an error that says what it must be like") {
  const std::string rest = R"( must have at most 253 characters and match regex )"
                           R"(([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*])";
  for (const auto* text : {"", ".", "net..a", "net.", "Net.a", "net.a_", "net.a-.b", "_net.a", "net.*.a", "net.a**",
                           "net a", "net.ü", "-net", "net.-a"}) {
    CAPTURE(text);
    CHECK(error(text) == "sysctl \"" + std::string(text) + "\"" + rest);
  }
  CHECK(error("net." + std::string(249, 'a')) == "no error");
  const auto long_name = "net." + std::string(250, 'a');
  CHECK(error(long_name) == "sysctl \"" + long_name + "\"" + rest);
  for (const auto* text : {"net.a-b_c.d", "net.a_*", "net.a-*", "net/a/*", "net.4"}) CHECK(error(text) == "no error");
}

}  // namespace evictd::admission::sysctl_allowlist_test
