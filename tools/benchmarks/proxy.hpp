#pragma once
#include <string>
#include <vector>

#include "benchmarks/statistics.hpp"

namespace bench {

/// A CRI call with and without evictd cri-proxy before containerd; milliseconds.
struct ProxiedCall {
  std::string name;
  Summary direct{};
  Summary proxied{};
};

struct ProxyOptions {
  int calls = 2000;  ///< of each kind, each way
  int pods = 10;     ///< that containerd lists
};

/// On a real containerd, with the real agent and the real proxy, by one client that makes one call after the other,
/// directly and through the proxy in turn. The last kind asks for a sandbox, with a runtime handler that containerd
/// refuses at once: what the agent's answer takes is in it, and no pod's start.
[[nodiscard]] std::vector<ProxiedCall> measure_proxy(const ProxyOptions& options);

[[nodiscard]] std::string proxy_table(const std::vector<ProxiedCall>& calls, const ProxyOptions& options);
[[nodiscard]] std::string proxy_json(const std::vector<ProxiedCall>& calls, const ProxyOptions& options);

}  // namespace bench
