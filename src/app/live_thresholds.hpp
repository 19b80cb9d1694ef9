#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/threshold_control.hpp"
#include "api/handlers.hpp"
#include "app/configuration.hpp"
#include "app/configuration_changes.hpp"
#include "app/kubelet_watch.hpp"
#include "async/deadline_thread.hpp"
#include "config/agent_configuration.hpp"
#include "config/kubelet_configuration.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/observation.hpp"
#include "core/threshold_advice.hpp"
#include "core/threshold_overlay.hpp"

namespace evictd::agent {
class Agent;
class Evictions;
class NodeReports;
class Recorder;
}  // namespace evictd::agent

namespace evictd::app {

class PlaceWatch;

/// Where a threshold of the policy was written: "/etc/evictd/thresholds.d/10.yaml", "the flags of kubelet (pid 812)",
/// or why it is there: "the kubelet's default".
[[nodiscard]] std::string origin_of(const Configuration& configuration, const core::Threshold& threshold);

/// Thresholds that change while evictd runs, put together: by calls, by the configuration's files, and by
/// another kubelet. While a kubelet runs of which it is not known by what it goes, nothing is evicted. On the reactor;
/// files are read and written beside it. A disk that does not answer holds up neither the calls nor evictd's end.
class LiveThresholds final : public api::ThresholdHandler, private agent::ThresholdSubject {
 public:
  struct Parts {
    agent::Agent& agent;
    agent::Evictions& evictions;
    agent::NodeReports& reports;
    agent::Recorder& recorder;
    core::ThresholdOverlay& live;  ///< where what calls change is kept for a restart
  };
  struct Options {
    const ConfigurationFiles& files;
    const Configuration& configuration;  ///< as the start read it
    bool dry_run = false;                ///< then no later start goes on with its thresholds
  };

  /// What the agent begins with. `first`: the node as it was read before the agent; `live`: what was changed by calls
  /// before a restart.
  [[nodiscard]] static agent::ThresholdStart at_start(const Configuration& configuration,
                                                      const core::Observations& first, core::ThresholdOverlay live);

  /// What the options and the parts refer to must outlive this.
  LiveThresholds(boost::asio::any_io_executor reactor, const Options& options, agent::ThresholdStart start,
                 const Parts& parts);
  LiveThresholds(const LiveThresholds&) = delete;
  LiveThresholds& operator=(const LiveThresholds&) = delete;
  ~LiveThresholds() override;

  [[nodiscard]] const core::EvictionPolicy& policy() const { return control_.policy_in_force(); }

  [[nodiscard]] v1::ThresholdSet thresholds() override;
  void update_thresholds(const v1::UpdateThresholdsRequest& request, UpdateDone done) override;
  [[nodiscard]] api::Answer<v1::SuggestThresholdsResponse> suggest_thresholds() override;
  void add_to(v1::NodeStatus& status) const;
  /// By what the kubelet goes, as far as it is known.
  [[nodiscard]] const kubelet::Configuration& kubelet_sources() const { return kubelet_sources_; }

  /// Who hears by what the kubelet goes, each time that is read; for as long as the reactor runs.
  void tell(PlaceWatch& places) { places_ = &places; }
  /// The configuration's files or the drop-ins changed: reads them all.
  void files_changed();

 private:
  [[nodiscard]] core::Observations observe() const override;
  void apply(core::EvictionPolicy policy, std::optional<std::size_t> evictions_within_a_minute) override;
  void report(std::vector<std::string> changes, const std::string& message) override;

  void read(const Result<Configuration>& configuration);
  void loaded(const Result<Configuration>& configuration);
  void known(const Configuration& configuration);
  void not_known(const Configuration& configuration);
  void only_watch(const std::string& why);
  /// Whether it only watched until now.
  bool act();
  void tell_other_changes(const config::AgentConfiguration& written, const config::KubeletConfiguration& kubelet);

  boost::asio::any_io_executor reactor_;
  const ConfigurationFiles& files_;
  const std::string drop_ins_;  // thresholds.dropIns of the start: another one takes a restart
  const bool allocates_;        // it is known what pods were given
  const WrittenSettings started_with_;
  WrittenSettings written_;  // as the files had it last
  kubelet::Configuration kubelet_sources_;
  std::optional<std::int64_t> kubelet_pid_;  // of the kubelet that goes by them
  bool is_known_;                            // they were found, this time or an earlier one
  std::optional<std::string> watch_only_;    // why nothing is evicted
  std::optional<core::ZoneWatermarks> watermarks_;
  async::DeadlineThread worker_{"reading or writing thresholds"};
  // On its own: a stateDirectory that hangs is no reason not to read what is in /etc.
  async::DeadlineThread state_worker_{"keeping thresholds for the next start"};
  Parts parts_;
  PlaceWatch* places_ = nullptr;  // null: nobody hears of it
  agent::ThresholdControl control_;
  std::optional<KubeletWatch> kubelet_watch_;  // where no file was named, or as long as that has not been read
  bool reading_ = false;
  bool changed_again_ = false;                                  // since the reading began
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what is under way outlives this
};

}  // namespace evictd::app
