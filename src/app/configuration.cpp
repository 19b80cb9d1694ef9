#include "app/configuration.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "app/admission.hpp"
#include "app/find_kubelet.hpp"
#include "app/last_runtime.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::app {
namespace {

/// The defaults where no file is named and none is where it usually is.
Result<config::AgentConfiguration> load_agent(const std::optional<std::string>& file) {
  return file ? config::load_agent_configuration(*file) : config::AgentConfiguration{};
}

}  // namespace

std::optional<std::string> find_agent_configuration(const std::filesystem::path& file) {
  std::error_code ignored;  // ENOENT and ENOTDIR are `not_found`, all else is not
  const bool is_absent = std::filesystem::symlink_status(file, ignored).type() == std::filesystem::file_type::not_found;
  return is_absent ? std::nullopt : std::optional<std::string>{file.native()};
}

OwnSettings own_settings(const ConfigurationFiles& files) {
  auto agent = load_agent(files.agent ? files.agent : find_agent_configuration());
  if (!agent) return {.agent = {}, .unreadable = std::move(agent.error())};
  return {.agent = *std::move(agent), .unreadable = std::nullopt};
}

Result<Configuration> load_configuration(const ConfigurationFiles& files, const AskCgroupDriver& ask, Patience patience,
                                         const std::optional<std::string>& drop_ins) {
  Configuration configuration;
  configuration.agent_file = files.agent ? files.agent : find_agent_configuration();
  auto agent = load_agent(configuration.agent_file);
  if (!agent) return std::unexpected(agent.error());
  configuration.written = *agent;
  configuration.agent = *std::move(agent);
  if (drop_ins) configuration.agent.thresholds.drop_ins = *drop_ins;
  auto found = patience == Patience::Bounded ? find_kubelet_in_time(files.kubelet, configuration.agent)
                                             : find_kubelet(files.kubelet, configuration.agent);
  if (!found) return std::unexpected(found.error());
  const bool is_kubelets = may_be_kubelets(*found, configuration.agent);
  configuration.is_told = !found->unknown && (found->pid || files.kubelet || configuration.agent.thresholds.configz);
  configuration.kubelet_sources = std::move(found->sources);
  if (!configuration.is_told)
    configuration.recalled = recall_runtime(configuration.kubelet_sources, configuration.agent);
  configuration.kubelet = configuration.kubelet_sources.values;
  configuration.kubelet_pid = found->pid;
  configuration.watch_only = std::move(found->unknown);
  auto discovery = discover(std::move(configuration.agent), configuration.kubelet_sources, ask);
  configuration.agent = std::move(discovery.agent);
  configuration.found = std::move(discovery.remarks);
  configuration.guesses = discovery.guesses;
  if (auto& directory = configuration.agent.device_plugins.directory; directory == config::to_be_found)
    directory = find_device_plugins(is_kubelets);
  if (const auto& directory = configuration.agent.thresholds.drop_ins; !directory.empty()) {
    auto loaded = config::load_threshold_drop_ins(directory);
    if (!loaded) return std::unexpected(loaded.error());
    configuration.threshold_drop_ins = *std::move(loaded);
  }
  auto eviction = configuration.kubelet.eviction;
  for (const auto& drop_in : configuration.threshold_drop_ins)
    eviction = core::overlaid(std::move(eviction), drop_in.overlay);
  auto policy = core::make_policy(eviction);
  // Each file is right by itself, so it is a matter of how they fit together.
  if (!policy) return fail(policy.error(), configuration.agent.thresholds.drop_ins);
  configuration.policy = *std::move(policy);
  if (!files.kubelet) leave_out_impossible_allocation(configuration);
  return configuration;
}

os::LogLevel log_level(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::Error: return os::LogLevel::Error;
    case config::LogLevel::Warn: return os::LogLevel::Warning;
    case config::LogLevel::Info: return os::LogLevel::Info;
    case config::LogLevel::Debug: return os::LogLevel::Debug;
  }
  return os::LogLevel::Info;
}

}  // namespace evictd::app
