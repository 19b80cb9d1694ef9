#include "admission/sysctl_allowlist.hpp"

#include <algorithm>
#include <array>

#include "admission/go_quoted.hpp"

namespace evictd::admission {
namespace {

constexpr std::size_t longest_name = 253;

/// A sysctl that harms neither the node nor other pods.
struct SafeSysctl {
  std::string_view name;
  SysctlNamespace space;
  KernelVersion since{};  ///< when it got a namespace; 0.0: it is taken for safe everywhere
};

constexpr auto ipc = SysctlNamespace::Ipc;
constexpr auto net = SysctlNamespace::Net;

constexpr std::array safe_sysctls{
    SafeSysctl{"kernel.shm_rmid_forced", ipc},
    SafeSysctl{"net.ipv4.ip_local_port_range", net},
    SafeSysctl{"net.ipv4.tcp_syncookies", net},
    SafeSysctl{"net.ipv4.ping_group_range", net},
    SafeSysctl{"net.ipv4.ip_unprivileged_port_start", net},
    SafeSysctl{"net.ipv4.ip_local_reserved_ports", net, {3, 16}},
    SafeSysctl{"net.ipv4.tcp_keepalive_time", net, {4, 5}},
    SafeSysctl{"net.ipv4.tcp_fin_timeout", net, {4, 6}},
    SafeSysctl{"net.ipv4.tcp_keepalive_intvl", net, {4, 5}},
    SafeSysctl{"net.ipv4.tcp_keepalive_probes", net, {4, 5}},
    SafeSysctl{"net.ipv4.tcp_rmem", net, {4, 15}},
    SafeSysctl{"net.ipv4.tcp_wmem", net, {4, 15}},
};

/// Sysctls of the IPC namespace, by their exact names. "kernel.shm" and "kernel.msg" are none, but what is left of
/// "kernel.shm*" and "kernel.msg*".
constexpr std::array<std::string_view, 10> ipc_sysctls{
    "kernel.sem",    "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced",
    "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.shm",    "kernel.msg"};

/// Of a name, or of what stands before a "*". The kubelet has none for kernel.hostname and kernel.domainname.
/// (kubelet: component-helpers node/util/sysctl, namespaceOf)
std::optional<SysctlNamespace> namespace_of(std::string_view sysctl) {
  if (std::ranges::find(ipc_sysctls, sysctl) != ipc_sysctls.end() || sysctl.starts_with("fs.mqueue.")) return ipc;
  if (sysctl.starts_with("net.")) return net;
  return std::nullopt;
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_inner(char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; }

/// What the kubelet matches with ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]
bool is_pattern(std::string_view text) {
  if (text.empty() || text.size() > longest_name) return false;
  const char last = text.back();
  if (!is_letter_or_digit(last) && last != '*') return false;
  text.remove_suffix(1);
  bool at_start = true;  // of a part
  char before = 0;
  for (const char c : text) {
    const bool is_separator = c == '.' || c == '/';
    const bool fits = at_start ? is_letter_or_digit(c) : is_separator ? is_letter_or_digit(before) : is_inner(c);
    if (!fits) return false;
    at_start = is_separator;
    before = c;
  }
  return true;
}

}  // namespace

std::string with_dots(std::string_view sysctl) {
  std::string result(sysctl);
  const auto first = result.find_first_of("./");
  if (first == std::string::npos || result[first] == '.') return result;
  for (auto& c : result) {
    if (c == '.')
      c = '/';
    else if (c == '/')
      c = '.';
  }
  return result;
}

std::string_view name(SysctlNamespace space) {
  static constexpr std::array<std::string_view, 2> names{"ipc", "net"};
  return names[static_cast<std::size_t>(space)];
}

Result<SysctlAllowlist> SysctlAllowlist::make(const std::vector<std::string>& allowed_unsafe) {
  SysctlAllowlist list;
  for (const auto& written : allowed_unsafe) {
    if (!is_pattern(written))
      return fail("sysctl " + go_quoted(written) + " must have at most " + std::to_string(longest_name) +
                  R"( characters and match regex ([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*)"
                  "([a-z0-9][-_a-z0-9]*)?[a-z0-9*]");
    const auto sysctl = with_dots(written);
    const bool is_prefix = sysctl.ends_with('*');
    const auto prefix = sysctl.substr(0, sysctl.size() - (is_prefix ? 1 : 0));
    const auto space = namespace_of(prefix);
    if (!space)
      return fail(std::string(is_prefix ? "the sysctls " : "the sysctl ") + go_quoted(sysctl) +
                  " are not known to be namespaced");
    if (is_prefix)
      list.prefixes_.emplace_back(prefix, *space);
    else
      list.names_.emplace(sysctl, *space);
  }
  return list;
}

std::optional<SysctlNamespace> SysctlAllowlist::allowed(std::string_view sysctl,
                                                        const std::optional<KernelVersion>& kernel) const {
  const auto safe = std::ranges::find(safe_sysctls, sysctl, &SafeSysctl::name);
  if (safe != safe_sysctls.end() && kernel.value_or(KernelVersion{}) >= safe->since) return safe->space;
  if (const auto found = names_.find(sysctl); found != names_.end()) return found->second;
  for (const auto& [prefix, space] : prefixes_)
    if (sysctl.starts_with(prefix)) return space;
  return std::nullopt;
}

std::optional<std::string> SysctlAllowlist::objection(std::string_view sysctl, HostNamespaces shared,
                                                      const std::optional<KernelVersion>& kernel) const {
  const auto dotted = with_dots(sysctl);
  const auto space = allowed(dotted, kernel);
  if (!space) return go_quoted(dotted) + " not allowlisted";
  const bool is_hosts = (*space == ipc && shared.ipc) || (*space == net && shared.network);
  if (is_hosts) return go_quoted(dotted) + " not allowed with host " + std::string(name(*space)) + " enabled";
  return std::nullopt;
}

}  // namespace evictd::admission
