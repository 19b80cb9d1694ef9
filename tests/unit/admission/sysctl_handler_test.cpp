#include "admission/sysctl_handler.hpp"

#include <doctest/doctest.h>

#include "fixture/pods.hpp"

namespace evictd::admission::sysctl_handler_test {
namespace {

Verdict admit(const core::Pod& pod, const std::vector<std::string>& allowed = {},
              const std::string& kernel = "6.1.0-18-amd64") {
  const NodeSnapshot node{.kernel_version = kernel};
  return SysctlHandler{fixture::value_of(SysctlAllowlist::make(allowed))}.admit(
      {.pod = pod, .other_pods = {}, .node = node});
}

core::Pod setting(std::vector<std::string> sysctls) {
  auto pod = fixture::pod("a");
  pod.sysctls = std::move(sysctls);
  return pod;
}

}  // namespace

TEST_CASE("a pod that sets no sysctl, or only allowed ones, is admitted") {
  CHECK(admit(fixture::pod("a")) == Verdict::admit());
  CHECK(admit(setting({"net.ipv4.tcp_syncookies", "net/ipv4/tcp_keepalive_time"})) == Verdict::admit());
  CHECK(admit(setting({"kernel.msgmax"}), {"kernel.msg*"}) == Verdict::admit());
}

TEST_CASE("the first sysctl that may not be set rejects the pod, critical or not") {
  const auto pod = setting({"net.ipv4.tcp_syncookies", "net/core/somaxconn", "kernel.sem"});
  const auto rejected = Verdict::reject("SysctlForbidden", "forbidden sysctl: \"net.core.somaxconn\" not allowlisted");
  CHECK(admit(pod) == rejected);
  CHECK(admit(fixture::with_priority(pod, 2'000'000'000)) == rejected);
}

TEST_CASE("the node's kernel decides what is safe; one that is unknown leaves what always was") {
  const auto pod = setting({"net.ipv4.tcp_rmem"});
  CHECK(admit(pod, {}, "4.15.0").admitted);
  for (const auto* kernel : {"4.14.336", "", "unknown"}) {
    CAPTURE(kernel);
    CHECK(admit(pod, {}, kernel).message == "forbidden sysctl: \"net.ipv4.tcp_rmem\" not allowlisted");
  }
}

TEST_CASE("a pod in the host's namespaces may not change them") {
  auto pod = setting({"net.ipv4.tcp_syncookies"});
  pod.host_ipc = true;
  CHECK(admit(pod).admitted);
  pod.host_network = true;
  CHECK(admit(pod) ==
        Verdict::reject("SysctlForbidden",
                        "forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled"));
  pod.sysctls = {"kernel.shm_rmid_forced"};
  CHECK(admit(pod) ==
        Verdict::reject("SysctlForbidden",
                        "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc enabled"));
}

}  // namespace evictd::admission::sysctl_handler_test
