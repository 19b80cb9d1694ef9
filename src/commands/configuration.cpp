#include "commands/configuration.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>

namespace evictd::commands {
namespace {

constexpr auto usual_agent_file = "/etc/evictd/agent.yaml";
constexpr auto usual_kubelet_file = "/var/lib/kubelet/config.yaml";

std::optional<std::string> given_or_found(const std::optional<std::string>& given, const char* usual_place) {
  std::error_code ignored;
  if (given || !std::filesystem::exists(usual_place, ignored)) return given;
  return usual_place;
}

}  // namespace

void add_file_options(CLI::App& command, ConfigurationFiles& files) {
  command
      .add_option("--config", files.agent,
                  std::string("an AgentConfiguration; otherwise ") + usual_agent_file + " if it exists")
      ->type_name("FILE");
  command
      .add_option("--kubelet-config", files.kubelet,
                  std::string("a KubeletConfiguration; otherwise ") + usual_kubelet_file + " if it exists")
      ->type_name("FILE");
}

Result<Configuration> load_configuration(const ConfigurationFiles& files) {
  Configuration configuration;
  configuration.agent_file = given_or_found(files.agent, usual_agent_file);
  configuration.kubelet_file = given_or_found(files.kubelet, usual_kubelet_file);
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

host::LogLevel log_level(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::Error: return host::LogLevel::Error;
    case config::LogLevel::Warn: return host::LogLevel::Warning;
    case config::LogLevel::Info: return host::LogLevel::Info;
    case config::LogLevel::Debug: return host::LogLevel::Debug;
  }
  return host::LogLevel::Info;
}

}  // namespace evictd::commands
