#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/kernel_version.hpp"
#include "core/error.hpp"

namespace evictd::admission {

/// The name with dots between its parts. One whose first separator is a slash has slashes and dots swapped:
/// "net/ipv4/conf/eth0.1/forwarding" is "net.ipv4.conf.eth0/1.forwarding". (sysctl.d(5))
[[nodiscard]] std::string with_dots(std::string_view sysctl);

/// The kernel's namespace that a sysctl, or a prefix of several, belongs to.
enum class SysctlNamespace : std::uint8_t { Ipc, Net };
[[nodiscard]] std::string_view name(SysctlNamespace space);

/// Which of the host's namespaces a pod shares.
struct HostNamespaces {
  bool network = false;
  bool ipc = false;
};

/// Which sysctls a pod may set: those that are safe with the node's kernel, and those that the node's configuration
/// allows in addition. (kubelet 1.36: sysctl.NewAllowlist; kubelet-spec section 12)
class SysctlAllowlist {
 public:
  /// `allowed_unsafe`: names, or prefixes that end in "*". Error: one that is malformed, or that the kubelet knows no
  /// namespace of, such as kernel.hostname and kernel.shm_*; it does not start with one either.
  [[nodiscard]] static Result<SysctlAllowlist> make(const std::vector<std::string>& allowed_unsafe);

  /// Why the pod may not set it, in the kubelet's words: `"kernel.sem" not allowlisted`; nothing where it may.
  /// `kernel`: nothing where it is unknown, which leaves only what was always safe.
  [[nodiscard]] std::optional<std::string> objection(std::string_view sysctl, HostNamespaces shared,
                                                     const std::optional<KernelVersion>& kernel) const;

 private:
  [[nodiscard]] std::optional<SysctlNamespace> allowed(std::string_view sysctl,
                                                       const std::optional<KernelVersion>& kernel) const;

  std::map<std::string, SysctlNamespace, std::less<>> names_;
  std::vector<std::pair<std::string, SysctlNamespace>> prefixes_;
};

}  // namespace evictd::admission
