#pragma once
#include <google/protobuf/timestamp.pb.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/agent.hpp"
#include "agent/alarms.hpp"
#include "agent/clock.hpp"
#include "agent/describe.hpp"
#include "agent/disk_wakes.hpp"
#include "agent/evictions.hpp"
#include "agent/inferred_volumes.hpp"
#include "agent/local_storage.hpp"
#include "agent/node_observer.hpp"
#include "agent/node_reports.hpp"
#include "agent/node_shutdown.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/pod_usage.hpp"
#include "agent/recorder.hpp"
#include "agent/restart.hpp"
#include "agent/runtime_events.hpp"
#include "agent/runtime_watch.hpp"
#include "agent/unlisted_pods.hpp"
#include "api/server.hpp"
#include "async/side_thread.hpp"
#include "commands/admission.hpp"
#include "commands/cluster_reports.hpp"
#include "commands/configuration.hpp"
#include "commands/event_history.hpp"
#include "commands/live_thresholds.hpp"
#include "commands/monitoring.hpp"
#include "commands/pod_sources.hpp"
#include "commands/sources.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "cri/client.hpp"
#include "events/event_log.hpp"
#include "evict/evictor.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/reaper.hpp"
#include "host/descriptor_store.hpp"
#include "host/systemd.hpp"
#include "kube/reporter.hpp"
#include "node/node_memory.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
#include "node/pod_disk.hpp"
#include "pods/cri_pods.hpp"
#include "pods/trust.hpp"
#include "wake/deadline.hpp"
#include "wake/fallback_timer.hpp"
#include "wake/turn_watch.hpp"
#include "wake/wakes.hpp"

namespace evictd::commands {

/// What the configuration may ask for in a way that cannot be, made before anything of the node is touched.
struct ConfiguredParts {
  std::unique_ptr<PodSources> pod_sources;
  PreparedAdmission admission;
  std::unique_ptr<ClusterReports> cluster;  ///< null: no API server is told anything

  static Result<ConfiguredParts> make(const boost::asio::any_io_executor& reactor, const Configuration& configuration,
                                      bool dry_run);
};

/// What there is before the guard's own parts; all must outlive it.
struct Given {
  boost::asio::io_context& reactor;
  const ConfigurationFiles& files;
  const Configuration& configuration;
  const std::string& endpoint;  ///< as parse_endpoint() gives it
  const api::ServerOptions& api;
  Measured node;
  const node::NodeMemoryReading& first_reading;
  host::InheritedDescriptors& inherited;
  bool dry_run = false;
};

/// evictd at work: its parts in the order in which they need one another, and how they are wired.
class NodeGuard final : private events::StatusSource, private api::RankHandler {
 public:
  NodeGuard(const Given& given, ConfiguredParts parts);
  NodeGuard(const NodeGuard&) = delete;
  NodeGuard& operator=(const NodeGuard&) = delete;

  /// Listens. Error: an address or a socket that cannot be had.
  [[nodiscard]] Result<void> begin();
  /// Until SIGINT or SIGTERM. What the agent throws, or anything else on the reactor, comes out of it.
  void run();

 private:
  [[nodiscard]] evict::Evictor::Parts means_of_eviction();
  [[nodiscard]] node::PodDisk::MakeWorker walkers() const;
  [[nodiscard]] kube::Reporter* cluster() const;
  [[nodiscard]] agent::AgentOptions agent_options() const;
  [[nodiscard]] agent::Agent::Parts agent_parts();
  [[nodiscard]] agent::PodTracker::Parts pod_tracker_parts();
  [[nodiscard]] agent::Evictions::Parts evictions_parts();
  [[nodiscard]] agent::RuntimeWatch::Parts runtime_watch_parts();
  [[nodiscard]] agent::Restartable restartable();
  [[nodiscard]] v1::NodeStatus status() override;
  [[nodiscard]] api::Answer<v1::RankPodsResponse> rank_pods(const v1::RankPodsRequest& request) override;
  [[nodiscard]] api::Handlers handlers();
  void stop();

  const Given given_;
  const config::AgentConfiguration& settings_ = given_.configuration.agent;
  const Measured& node_ = given_.node;
  const boost::asio::any_io_executor executor_ = given_.reactor.get_executor();
  agent::SteadyClock clock_;
  host::ServiceManager service_{executor_};

  // The pods, and what they use.
  cri::Client runtime_{executor_, given_.endpoint, std::chrono::ceil<std::chrono::milliseconds>(settings_.cri.timeout)};
  pods::CriPods pods_{runtime_, given_.first_reading.capacity,
                      pods::TrustedNamespaces{settings_.pod_sources.trusted_namespaces}};
  std::unique_ptr<PodSources> pod_sources_;
  agent::UnlistedPods unlisted_{{.hierarchy = node_.hierarchy,
                                 .pods_cgroup = node_.memory.pods_cgroup(),
                                 .proc = settings_.node.proc_mount,
                                 .memory_capacity = given_.first_reading.capacity}};
  node::PodCgroups cgroups_{node_.hierarchy};
  const node::PodRoots pod_roots_{.logs = settings_.node.pod_logs_dir,
                                  .kubelet = settings_.node.kubelet_root,
                                  .layers = std::make_shared<node::LayerMounts>(settings_.node.proc_mount)};
  node::PodDisk pod_disk_{executor_, walkers(), {.roots = pod_roots_, .interval = settings_.node.disk_usage_interval}};
  agent::PodUsageReader usage_{
      {.cgroups = cgroups_, .memory = node_.memory, .disk = pod_disk_, .runtime = runtime_, .pods = pods_}};
  agent::InferredVolumes volumes_{std::make_unique<async::SideThread>(executor_, "volumes"), pod_roots_};
  agent::NodeObserver observer_{node_.memory, node_.disk, node_.readers};

  // What wakes it.
  wake::Wakes wakes_{executor_};
  Sources sources_;
  const SourceMaker source_maker_{sources_, executor_, wakes_, given_.configuration};
  const wake::TurnWatch& turns_ = add<wake::TurnWatch>(sources_, executor_, wakes_);
  wake::Deadline& deadline_ = add<wake::Deadline>(sources_, executor_, wakes_);
  wake::FallbackTimer& fallback_ =
      add<wake::FallbackTimer>(sources_, executor_, wakes_, settings_.notifier.fallback_interval);

  // What it does.
  evict::Reaper reaper_;
  evict::Evictor evictor_{executor_,
                          means_of_eviction(),
                          {.direct_kill = settings_.kill.mode == config::KillMode::Fast,
                           .stop_timeout = settings_.eviction.stop_timeout,
                           .cleanup_timeout = settings_.eviction.cleanup_timeout}};
  evict::NodeReclaimer reclaimer_{runtime_};

  // What it tells, and keeps.
  agent::RestartState restart_{given_.dry_run ? "" : config::runtime_files(settings_).state, given_.inherited};
  EventHistory history_{executor_, settings_, restart_.take_events()};
  events::EventLog& events_ = history_.log();
  agent::Recorder recorder_{events_};
  const agent::ThresholdStart start_ =
      LiveThresholds::at_start(given_.configuration, given_.first_reading.observations, restart_.live_thresholds());
  std::unique_ptr<ClusterReports> cluster_;

  // The loop. What it is made of tells it what it learns: it is made first, and they are used once it runs.
  agent::DiskWakes disk_wakes_{node_.disk, wakes_, recorder_, clock_};
  agent::Alarms alarms_{
      {.wakes = wakes_, .deadline = deadline_, .fallback = fallback_, .sources = sources_, .disks = &disk_wakes_}};
  agent::NodeReports reports_{
      {.observer = observer_, .log = recorder_, .service = service_, .state = restart_, .cluster = cluster()}};
  agent::Agent agent_{executor_, clock_, start_.policy, agent_options(), agent_parts()};
  agent::LocalStorage local_storage_{executor_,
                                     {.roots = pod_roots_, .longest_wait = agent::PodTracker::usual_interval},
                                     {.disk = pod_disk_,
                                      .usage = usage_,
                                      .pods = pods_,
                                      .catalog = pod_sources_->catalog(),
                                      .alarms = alarms_,
                                      .clock = clock_}};
  agent::RuntimeEvents runtime_events_{executor_, runtime_, pod_tracker_, clock_,
                                       given_.configuration.kubelet.evented_pleg()};
  agent::PodTracker pod_tracker_{executor_, agent::PodTracker::usual_interval, pod_tracker_parts()};
  agent::Evictions evictions_{
      executor_, {.cleanup_timeout = settings_.eviction.cleanup_timeout, .dry_run = given_.dry_run}, evictions_parts()};
  agent::RuntimeWatch runtime_watch_{executor_, runtime_watch_parts()};
  LiveThresholds thresholds_{executor_,
                             given_.files,
                             given_.configuration,
                             start_,
                             {.agent = agent_, .reports = reports_, .recorder = recorder_}};
  const std::unique_ptr<agent::NodeShutdown> shutdown_;  // null: it does not wait for a shutdown of the node
  Admission admission_;
  const google::protobuf::Timestamp started_ = agent::wall_time(std::chrono::steady_clock::now());

  // Whom it answers.
  const std::unique_ptr<Monitoring> monitoring_;  // null: nothing is offered over HTTP
  api::Server server_;
};

}  // namespace evictd::commands
