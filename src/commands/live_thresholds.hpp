#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>

#include "agent/threshold_control.hpp"
#include "api/handlers.hpp"
#include "async/deadline_thread.hpp"
#include "commands/configuration.hpp"
#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/observation.hpp"
#include "core/threshold_advice.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::agent {
class Agent;
class NodeReports;
class Recorder;
}  // namespace evictd::agent

namespace evictd::commands {

/// Thresholds that change while evictd runs, put together: by calls, and by the configuration's files. On the reactor;
/// files are read and written beside it. A disk that does not answer holds up neither the calls nor evictd's end.
class LiveThresholds {
 public:
  /// `first`: the node as it was read before the agent; `live`: what was changed by calls before a restart. The files
  /// and the configuration must outlive this.
  LiveThresholds(boost::asio::any_io_executor reactor, const ConfigurationFiles& files,
                 const Configuration& configuration, const core::Observations& first, core::ThresholdOverlay live);
  LiveThresholds(const LiveThresholds&) = delete;
  LiveThresholds& operator=(const LiveThresholds&) = delete;
  ~LiveThresholds();

  /// What the agent begins with.
  [[nodiscard]] const core::EvictionPolicy& policy() const { return control_.policy_in_force(); }
  [[nodiscard]] std::size_t evictions_after_start() const { return control_.evictions_after_start(); }
  [[nodiscard]] const core::ThresholdOverlay& live() const { return control_.live(); }

  /// All of them must outlive this.
  void begin(agent::Agent& agent, agent::NodeReports& reports, agent::Recorder& recorder);
  /// The calls that this answers, once it has begun.
  void answer(api::Handlers& handlers);
  void add_to(v1::NodeStatus& status) const;

  /// The configuration's files or the drop-ins changed: reads them all.
  void files_changed();

 private:
  void read(const Result<Configuration>& configuration);
  void loaded(const Result<Configuration>& configuration);
  void tell_other_changes(const Configuration& configuration);
  [[nodiscard]] v1::SuggestThresholdsResponse suggest() const;

  boost::asio::any_io_executor reactor_;
  const ConfigurationFiles& files_;
  config::AgentConfiguration settings_;   // as the files had it last
  config::KubeletConfiguration kubelet_;  // the same
  std::optional<core::ZoneWatermarks> watermarks_;
  async::DeadlineThread worker_{"reading or writing thresholds"};
  agent::ThresholdControl control_;
  agent::NodeReports* reports_ = nullptr;
  agent::Recorder* recorder_ = nullptr;
  bool reading_ = false;
  bool changed_again_ = false;                                  // since the reading began
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::commands
