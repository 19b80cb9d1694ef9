#include "app/configuration.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/signal.hpp"
#include "core/threshold_overlay.hpp"
#include "kubelet/process.hpp"

namespace evictd::app {
namespace {

std::optional<std::string> find_agent_configuration() {
  std::error_code ignored;
  return std::filesystem::exists(usual_agent_file, ignored) ? std::optional<std::string>{usual_agent_file}
                                                            : std::nullopt;
}

/// The kubelet that runs is asked before the places where nodes usually have its file: its flags may say something
/// else.
Result<void> load_kubelet(const ConfigurationFiles& files, Configuration& configuration) {
  auto& sources = configuration.kubelet_sources;
  const auto running = files.kubelet ? std::nullopt : kubelet::find_process(configuration.agent.node.proc_mount);
  if (running) {
    configuration.kubelet_pid = running->pid;
    auto loaded = kubelet::load(*running);
    if (!loaded) return std::unexpected(loaded.error());
    if (*loaded)
      sources = **std::move(loaded);
    else
      configuration.watch_only = std::move(loaded->error().why);
  } else {
    const auto usual = files.kubelet ? files.kubelet : find_kubelet_configuration();
    auto loaded = kubelet::load_files(usual, usual ? std::nullopt : kubelet::find_rancher_drop_ins());
    if (!loaded) return std::unexpected(loaded.error());
    sources = *std::move(loaded);
  }
  configuration.kubelet = sources.values;
  return {};
}

}  // namespace

Result<Configuration> load_configuration(const ConfigurationFiles& files, const AskCgroupDriver& ask) {
  Configuration configuration;
  configuration.agent_file = files.agent ? files.agent : find_agent_configuration();
  if (configuration.agent_file) {
    auto agent = config::load_agent_configuration(*configuration.agent_file);
    if (!agent) return std::unexpected(agent.error());
    configuration.agent = *std::move(agent);
  }
  if (const auto found = load_kubelet(files, configuration); !found) return std::unexpected(found.error());
  auto discovery = discover(std::move(configuration.agent), configuration.kubelet, ask);
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

std::string origin_of(const Configuration& configuration, const core::Threshold& threshold) {
  using enum core::ThresholdSource;
  // The copies are of a threshold on the node's own signal; which, is told by `source`.
  if (threshold.source == Default) return "the kubelet's default";
  if (threshold.source == Derived) return "what nodefs or imagefs has";
  const auto signal = threshold.source == EnforceNodeAllocatable ? core::Signal::MemoryAvailable : threshold.signal;
  const auto name = std::string(core::name(signal));
  const auto& drop_ins = configuration.threshold_drop_ins;
  for (auto drop_in = drop_ins.rbegin(); drop_in != drop_ins.rend(); ++drop_in) {
    const auto& entries = threshold.is_hard() ? drop_in->overlay.hard : drop_in->overlay.soft;
    if (entries.contains(name)) return configuration.agent.thresholds.drop_ins + "/" + drop_in->name;
  }
  const auto& origins = configuration.kubelet_sources.origins;
  const auto origin = origins.find((threshold.is_hard() ? "evictionHard: " : "evictionSoft: ") + name);
  return origin != origins.end() ? origin->second : "the kubelet's default";
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
