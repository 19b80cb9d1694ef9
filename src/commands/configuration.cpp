#include "commands/configuration.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "commands/command_line.hpp"
#include "commands/discovery.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::commands {
namespace {

constexpr auto usual_agent_file = "/etc/evictd/agent.yaml";

std::optional<std::string> find_agent_configuration() {
  std::error_code ignored;
  return std::filesystem::exists(usual_agent_file, ignored) ? std::optional<std::string>{usual_agent_file}
                                                            : std::nullopt;
}

}  // namespace

void add_file_options(CommandLine& line, ConfigurationFiles& files) {
  line.option({.names = "--config",
               .meaning = std::string("an AgentConfiguration; otherwise ") + usual_agent_file + " if it exists",
               .type = "FILE"},
              files.agent);
  line.option({.names = "--kubelet-config",
               .meaning = "a KubeletConfiguration; otherwise the kubelet's own, where nodes usually have it",
               .type = "FILE"},
              files.kubelet);
}

Result<Configuration> load_configuration(const ConfigurationFiles& files) {
  Configuration configuration;
  configuration.agent_file = files.agent ? files.agent : find_agent_configuration();
  configuration.kubelet_file = files.kubelet ? files.kubelet : find_kubelet_configuration();
  if (configuration.agent_file) {
    auto agent = config::load_agent_configuration(*configuration.agent_file);
    if (!agent) return std::unexpected(agent.error());
    configuration.agent = *std::move(agent);
  }
  if (configuration.kubelet_file) {
    auto kubelet = config::load_kubelet_configuration(*configuration.kubelet_file);
    if (!kubelet) return std::unexpected(kubelet.error());
    configuration.kubelet = *std::move(kubelet);
  }
  auto discovery = discover(std::move(configuration.agent), configuration.kubelet);
  configuration.agent = std::move(discovery.agent);
  configuration.found = std::move(discovery.remarks);
  if (const auto& directory = configuration.agent.thresholds.drop_ins; !directory.empty()) {
    auto drop_ins = config::load_threshold_drop_ins(directory);
    if (!drop_ins) return std::unexpected(drop_ins.error());
    configuration.threshold_drop_ins = *std::move(drop_ins);
  }
  auto eviction = configuration.kubelet.eviction;
  for (const auto& drop_in : configuration.threshold_drop_ins)
    eviction = core::overlaid(std::move(eviction), drop_in.overlay);
  auto policy = core::make_policy(eviction);
  // Each file is right by itself, so it is a matter of how they fit together.
  if (!policy) return fail(policy.error(), configuration.agent.thresholds.drop_ins);
  configuration.policy = *std::move(policy);
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

}  // namespace evictd::commands
