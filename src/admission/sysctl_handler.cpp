#include "admission/sysctl_handler.hpp"

#include "admission/kernel_version.hpp"

namespace evictd::admission {

Verdict SysctlHandler::admit(const Attributes& attributes) {
  const auto& pod = attributes.pod;
  const auto kernel = parse_kernel_version(attributes.node.kernel_version);
  for (const auto& sysctl : pod.sysctls)
    if (const auto objection = allowlist_.objection(sysctl, {.network = pod.host_network, .ipc = pod.host_ipc}, kernel))
      return Verdict::reject("SysctlForbidden", "forbidden sysctl: " + *objection);
  return Verdict::admit();
}

}  // namespace evictd::admission
