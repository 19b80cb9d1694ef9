#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/discovery.hpp"
#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"
#include "config/threshold_drop_in.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "kubelet/configuration.hpp"
#include "os/log.hpp"

namespace evictd::app {

/// Where an AgentConfiguration is looked for if none is named.
inline constexpr auto usual_agent_file = "/etc/evictd/agent.yaml";

/// The AgentConfiguration that is looked for; none where nothing has its name. One that is there and cannot be looked
/// at is named, so that loading it says why.
[[nodiscard]] std::optional<std::string> find_agent_configuration(const std::filesystem::path& file = usual_agent_file);

/// What --config and --kubelet-config name. An absent one is looked for where such files are kept; if it is not there,
/// the defaults hold.
struct ConfigurationFiles {
  std::optional<std::string> agent;  ///< otherwise `usual_agent_file`
  /// Otherwise what the kubelet goes by that runs here, and where none does what nodes usually have.
  std::optional<std::string> kubelet;
};

/// All documents, checked together.
struct Configuration {
  /// Without an "auto", but for that of admission.enforce, which is looked into again and again.
  config::AgentConfiguration agent;
  config::AgentConfiguration written;  ///< the same as its file has it, with each "auto"
  /// The values of `kubelet_sources`, but for what was left out because of `no_allocation` or `state_is_silent`.
  config::KubeletConfiguration kubelet;
  std::vector<config::ThresholdDropIn> threshold_drop_ins;
  core::EvictionPolicy policy;                ///< of the kubelet's configuration with the drop-ins on top
  std::optional<std::string> agent_file;      ///< absent: defaults
  kubelet::Configuration kubelet_sources;     ///< by what the kubelet's values are as they are
  std::optional<std::int64_t> kubelet_pid{};  ///< of the one that runs, and goes by them
  /// They are what a kubelet goes by that runs or answers, or they are named. Otherwise a kubelet may come that says
  /// something else.
  bool is_told = false;
  bool recalled = false;  ///< they name the runtime that a kubelet named before (app/last_runtime.hpp)
  /// Why nothing may be evicted: a kubelet runs, and by which thresholds cannot be told. Absent: evictd acts.
  std::optional<std::string> watch_only{};
  /// Why admission gives no CPUs, memory and devices to pods by the policies of the kubelet's configuration: it was
  /// found and not named, and evictd cannot do what it says. Absent: admission goes by it.
  std::optional<std::string> no_allocation{};
  bool state_is_silent = false;    ///< the disk of stateDirectory did not answer (app/state_directory.hpp)
  std::vector<std::string> found;  ///< on the machine, for what the documents leave open: a line each
  Guesses guesses{};               ///< what of it was not there yet
};

/// Whether what the kubelet goes by may be waited for: a disk that holds its files, or the kubelet, may not answer.
enum class Patience : bool {
  Bounded,    ///< kubelet_patience; then it is unknown, and `watch_only` says so
  AsItTakes,  ///< beside the reactor
};

/// The error names file, line, key and value. `ask`: how the runtime is asked for its cgroup driver where the machine
/// does not show it; none: it is not asked, for whoever needs no pods' cgroup or may not wait. `drop_ins`: the
/// directory in use, which holds in place of thresholds.dropIns; "": there is none.
[[nodiscard]] Result<Configuration> load_configuration(const ConfigurationFiles& files, const AskCgroupDriver& ask = {},
                                                       Patience patience = Patience::Bounded,
                                                       const std::optional<std::string>& drop_ins = {});

/// evictd's own settings alone, for whoever puts back what an evictd left: that waits for no other file to be mended.
struct OwnSettings {
  config::AgentConfiguration agent;  ///< as they were written, with each "auto"
  std::optional<Error> unreadable;   ///< what is wrong with their file: then they are the defaults
};
/// Reads one file at most, and asks nobody.
[[nodiscard]] OwnSettings own_settings(const ConfigurationFiles& files);

[[nodiscard]] os::LogLevel log_level(config::LogLevel level);

}  // namespace evictd::app
