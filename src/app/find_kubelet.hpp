#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "kubelet/configuration.hpp"

namespace evictd::app {

/// By what the node's kubelet goes, as far as that can be found.
struct FoundKubelet {
  kubelet::Configuration sources{};      ///< the kubelet's defaults where `unknown` is set
  std::optional<std::int64_t> pid{};     ///< of the one that runs and goes by them
  bool runs = false;                     ///< one does, whether it goes by `sources` or not
  std::optional<std::string> unknown{};  ///< why a kubelet's configuration cannot be told, in one line
};

/// For what the kubelet's files and /configz take where all is well, many times over.
inline constexpr std::chrono::milliseconds kubelet_patience{3000};

/// `named`: what --kubelet-config names, which is then all there is. Otherwise a kubelet that runs is asked (with
/// thresholds.configz) or read; where none does, what nodes usually have.
///
/// The error is that of a file that the operator named, of evictd's own keys, or of a file that no kubelet runs by.
/// Waits for the disk, and no longer for the kubelet than kubelet_patience.
[[nodiscard]] Result<FoundKubelet> find_kubelet(const std::optional<std::string>& named,
                                                const config::AgentConfiguration& agent);

/// The same within kubelet_patience, and as long again to learn whether a kubelet runs beside what is named or asked
/// for: where there are too many processes to tell, one does. A disk that does not answer makes what is on it unknown.
[[nodiscard]] Result<FoundKubelet> find_kubelet_in_time(const std::optional<std::string>& named,
                                                        const config::AgentConfiguration& agent);

/// Whether the configuration speaks of a kubelet: one whose process evictd may not see, or that is only just being
/// started anew.
[[nodiscard]] bool names_kubelet(const config::AgentConfiguration& agent);

/// Whether the node may be a kubelet's: one runs, was not found in time, or is spoken of.
[[nodiscard]] bool may_be_kubelets(const FoundKubelet& found, const config::AgentConfiguration& agent);

}  // namespace evictd::app
