#include "commands/run.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>
#include <google/protobuf/timestamp.pb.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "agent/agent.hpp"
#include "agent/describe.hpp"
#include "agent/node_observer.hpp"
#include "agent/pod_ranking.hpp"
#include "agent/pod_usage.hpp"
#include "agent/unlisted_pods.hpp"
#include "api/event_log.hpp"
#include "api/event_store.hpp"
#include "api/server.hpp"
#include "commands/admission.hpp"
#include "commands/api_server.hpp"
#include "commands/cluster_reports.hpp"
#include "commands/configuration.hpp"
#include "commands/event_history.hpp"
#include "commands/live_thresholds.hpp"
#include "commands/monitoring.hpp"
#include "commands/node_shutdown.hpp"
#include "commands/pod_sources.hpp"
#include "commands/restart_state.hpp"
#include "commands/side_task.hpp"
#include "commands/sources.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "core/eviction_settings.hpp"
#include "core/threshold.hpp"
#include "cri/endpoint.hpp"
#include "evict/evictor.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/reaper.hpp"
#include "host/descriptor_store.hpp"
#include "host/inhibitor_lock.hpp"
#include "host/log.hpp"
#include "host/node_lock.hpp"
#include "host/self_protection.hpp"
#include "host/systemd.hpp"
#include "node/cgroup.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
#include "node/pod_disk.hpp"
#include "node/protected_processes.hpp"
#include "pods/cri_pods.hpp"
#include "wake/deadline.hpp"
#include "wake/fallback_timer.hpp"
#include "wake/memory_fence.hpp"
#include "wake/turn_watch.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;

namespace evictd::commands {
namespace {

/// So that nothing on the host is changed by two at once; not in a dry run either, which keeps the same files and
/// sockets. Without a lock where there can be none.
Result<std::optional<host::NodeLock>> take_node_lock(const config::NodeSettings& node) {
  if (node.lock_file.empty()) return std::nullopt;
  auto taken = host::NodeLock::take(node.lock_file, EVICTD_VERSION);
  if (const auto* held = std::get_if<host::NodeLock::Held>(&taken)) return std::unexpected(held->error);
  if (const auto* unusable = std::get_if<host::NodeLock::Unusable>(&taken)) {
    host::log_warning("{}", unusable->error.message);
    return std::nullopt;
  }
  return std::get<host::NodeLock>(std::move(taken));
}

agent::AgentOptions agent_options(const config::AgentConfiguration& settings, const node::PodRoots& pod_roots,
                                  std::size_t evictions_in_first_minute, bool dry_run) {
  return {.refresh_interval = settings.cri.refresh_interval,
          .cleanup_timeout = settings.eviction.cleanup_timeout,
          .pod_roots = pod_roots,
          .right_amount = {.back_off = settings.eviction.back_off,
                           .max_evictions_per_minute = static_cast<std::size_t>(settings.eviction.max_per_minute),
                           .evictions_in_first_minute = evictions_in_first_minute},
          .dry_run = dry_run};
}

void say_what_is_guarded(const std::string& node, std::string_view hierarchy, std::int64_t memory,
                         const core::EvictionPolicy& policy, bool dry_run) {
  host::log_info("evictd {} guards {} ({}, {} of memory) with {} thresholds{}", EVICTD_VERSION, node, hierarchy,
                 agent::human_bytes(memory), policy.thresholds.size(), dry_run ? "; dry run: nothing is evicted" : "");
  const auto in_words = [](const core::Threshold& threshold) { return core::to_string(threshold); };
  host::log_info("it acts on {}", fmt::join(policy.thresholds | std::views::transform(in_words), ", "));
}

/// What the configuration may ask for in a way that cannot be, made before anything of the node is touched.
struct ConfiguredParts {
  std::unique_ptr<PodSources> pod_sources;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<ClusterReports> cluster;  ///< null: no API server is told anything
  std::unique_ptr<Monitoring> monitoring;   ///< null: nothing is offered over HTTP

  static Result<ConfiguredParts> make(const asio::any_io_executor& reactor, const Configuration& configuration,
                                      std::int64_t memory_capacity, bool dry_run);
};

Result<ConfiguredParts> ConfiguredParts::make(const asio::any_io_executor& reactor, const Configuration& configuration,
                                              std::int64_t memory_capacity, bool dry_run) {
  auto pod_sources = PodSources::make(reactor, configuration);
  if (!pod_sources) return std::unexpected(pod_sources.error());
  auto admission = Admission::prepare(configuration, memory_capacity);
  if (!admission) return std::unexpected(admission.error());
  auto cluster = ClusterReports::make(reactor, configuration, dry_run);
  if (!cluster) return std::unexpected(cluster.error());
  auto monitoring = Monitoring::make(reactor, configuration.agent.http);
  if (!monitoring) return std::unexpected(monitoring.error());
  return ConfiguredParts{*std::move(pod_sources), *std::move(admission), *std::move(cluster), *std::move(monitoring)};
}

/// What there is before the guard's own parts; all must outlive it.
struct Given {
  asio::io_context& reactor;
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
class NodeGuard {
 public:
  NodeGuard(const Given& given, ConfiguredParts parts);
  NodeGuard(const NodeGuard&) = delete;
  NodeGuard& operator=(const NodeGuard&) = delete;

  /// Listens. Error: an address or a socket that cannot be had.
  [[nodiscard]] Result<void> begin();
  /// Until SIGINT or SIGTERM. What the agent throws comes out of it.
  void run();

 private:
  [[nodiscard]] evict::Evictor::Parts means_of_eviction();
  [[nodiscard]] agent::Agent::Parts agent_parts();
  [[nodiscard]] v1::NodeStatus status();
  [[nodiscard]] api::Handlers handlers();
  void stop();

  const Given given_;
  const config::AgentConfiguration& settings_ = given_.configuration.agent;
  const Measured& node_ = given_.node;
  const asio::any_io_executor executor_ = given_.reactor.get_executor();
  host::ServiceManager service_{executor_};

  // The pods, and what they use.
  cri::Client runtime_{executor_, given_.endpoint, std::chrono::ceil<std::chrono::milliseconds>(settings_.cri.timeout)};
  pods::CriPods pods_{runtime_, given_.first_reading.capacity};
  std::unique_ptr<PodSources> pod_sources_;
  agent::UnlistedPods unlisted_{{.hierarchy = node_.hierarchy,
                                 .pods_cgroup = node_.memory.pods_cgroup(),
                                 .proc = settings_.node.proc_mount,
                                 .memory_capacity = given_.first_reading.capacity}};
  node::PodCgroups cgroups_{node_.hierarchy};
  asio::thread_pool walkers_{1};  // directories are walked beside the loop; one walk at a time keeps a disk busy enough
  const node::PodRoots pod_roots_{.logs = settings_.node.pod_logs_dir, .kubelet = settings_.node.kubelet_root};
  node::PodDisk pod_disk_{
      executor_, walkers_.get_executor(), {.roots = pod_roots_, .interval = settings_.node.disk_usage_interval}};
  agent::PodUsageReader usage_{
      {.cgroups = cgroups_, .memory = node_.memory, .disk = pod_disk_, .runtime = runtime_, .pods = pods_}};
  agent::NodeObserver observer_{node_.memory, node_.disk, node_.pids};

  // What wakes it.
  wake::Wakes wakes_{executor_};
  Sources sources_;
  const SourceMaker source_maker_{sources_, executor_, wakes_, given_.configuration};
  const wake::TurnWatch& turns_ = add<wake::TurnWatch>(sources_, executor_, wakes_);
  wake::Deadline& deadline_ = add<wake::Deadline>(sources_, executor_, wakes_);
  wake::FallbackTimer& fallback_ =
      add<wake::FallbackTimer>(sources_, executor_, wakes_, settings_.notifier.fallback_interval);

  // What it does.
  std::unique_ptr<Admission> admission_;
  evict::Reaper reaper_;
  evict::Evictor evictor_{executor_,
                          means_of_eviction(),
                          {.kill = settings_.kill.mode,
                           .stop_timeout = settings_.eviction.stop_timeout,
                           .cleanup_timeout = settings_.eviction.cleanup_timeout}};
  evict::NodeReclaimer reclaimer_{runtime_};

  // What it tells, and keeps.
  const std::unique_ptr<api::EventStore> history_ = open_event_history(executor_, settings_.api);
  api::EventLog events_{executor_,
                        {.history = static_cast<std::size_t>(settings_.api.history_limit),
                         .subscriber_queue = static_cast<std::size_t>(settings_.api.subscriber_queue)},
                        history_ != nullptr ? history_->take_earlier() : api::EarlierEvents{}};
  agent::Recorder recorder_{events_};
  RestartState restart_{given_.dry_run ? "" : settings_.eviction.state_file, given_.inherited};
  LiveThresholds thresholds_{executor_, given_.files, given_.configuration, given_.first_reading.observations,
                             restart_.live_thresholds()};
  std::unique_ptr<ClusterReports> cluster_;
  agent::Agent agent_{executor_, thresholds_.policy(),
                      agent_options(settings_, pod_roots_, thresholds_.evictions_after_start(), given_.dry_run),
                      agent_parts()};
  std::unique_ptr<agent::NodeShutdown> shutdown_;  // null: it does not wait for a shutdown of the node
  const google::protobuf::Timestamp started_ = agent::wall_time(std::chrono::steady_clock::now());

  // Whom it answers.
  std::unique_ptr<Monitoring> monitoring_;
  std::optional<api::Server> server_;  // since begin()
};

NodeGuard::NodeGuard(const Given& given, ConfiguredParts parts)
    : given_{given},
      pod_sources_{std::move(parts.pod_sources)},
      admission_{std::move(parts.admission)},
      cluster_{std::move(parts.cluster)},
      monitoring_{std::move(parts.monitoring)} {
  if (history_ != nullptr) history_->follow(events_);
  shutdown_ = make_node_shutdown(
      executor_, given_.configuration, given_.dry_run, host::InhibitorLock::inherited(given_.inherited),
      {.agent = agent_, .pods = pods_, .catalog = pod_sources_->catalog(), .events = events_});
  source_maker_.watch_node(node_, given_.dry_run);
  source_maker_.watch_pods(agent_, *pod_sources_, node_.hierarchy, node_.memory, pod_roots_);
  source_maker_.watch_configuration([this] { thresholds_.files_changed(); });
  thresholds_.begin(agent_, recorder_);
  restart_.begin(agent_, thresholds_);
  admission_->begin({.agent = agent_, .recorder = recorder_, .sources = *pod_sources_, .shutting_down = [this] {
                       return shutdown_ != nullptr && shutdown_->shutting_down();
                     }});
}

evict::Evictor::Parts NodeGuard::means_of_eviction() {
  return {.runtime = runtime_,
          .hierarchy = node_.hierarchy,
          .pods_cgroup = node_.memory.pods_cgroup(),
          .cgroups = cgroups_,
          .reaper = reaper_,
          .is_protected = [this](pid_t pid) { return node::is_protected(pid, settings_.node.proc_mount); }};
}

agent::Agent::Parts NodeGuard::agent_parts() {
  return {.observer = observer_,
          .usage = usage_,
          .disk = node_.disk,
          .cgroups = cgroups_,
          .pod_disk = pod_disk_,
          .pods = pods_,
          .catalog = pod_sources_->catalog(),
          .unlisted = unlisted_,
          .runtime = runtime_,
          .wakes = wakes_,
          .deadline = deadline_,
          .fallback = fallback_,
          .sources = sources_,
          .evictor = evictor_,
          .reclaimer = reclaimer_,
          .recorder = recorder_,
          .service = service_,
          .cluster = cluster_ != nullptr ? &cluster_->reporter() : nullptr};
}

v1::NodeStatus NodeGuard::status() {
  auto status = agent_.status();
  status.set_version(EVICTD_VERSION);
  *status.mutable_started() = started_;
  if (shutdown_ != nullptr) *status.mutable_shutdown() = shutdown_->status();
  *status.mutable_reactor() = agent::describe_reactor(turns_.lateness());
  thresholds_.add_to(status);
  return status;
}

api::Handlers NodeGuard::handlers() {
  api::Handlers handlers{
      .status = [this] { return status(); },
      .admitter = admission_->admitter(),
      .audit = [this](const v1::Audit& audit) { recorder_.audit(audit); },
  };
  thresholds_.answer(handlers);
  handlers.rank_pods = [this](const v1::RankPodsRequest& request) { return agent::rank_pods(agent_, request); };
  return handlers;
}

Result<void> NodeGuard::begin() {
  server_.emplace(given_.api, events_, handlers());
  if (auto listening = start(*server_, given_.api); !listening) return listening;
  if (monitoring_ == nullptr) return {};
  return monitoring_->begin({.events = events_, .runtime = runtime_, .status = [this] { return status(); }});
}

void NodeGuard::run() {
  asio::signal_set signals{executor_, SIGINT, SIGTERM};
  signals.async_wait([this](boost::system::error_code error, int) {
    if (!error) stop();
  });
  for (const auto& remark : given_.configuration.found) host::log_info("{}", remark);
  say_what_is_guarded(node_.memory.node_cgroup(), node::name(node_.hierarchy.version()), given_.first_reading.capacity,
                      thresholds_.policy(), given_.dry_run);
  if (settings_.protection.lock_memory)
    if (const auto locked = host::lock_memory(); !locked) host::log_warning("{}", locked.error().message);
  const auto guard = [this]() -> asio::awaitable<void> {
    co_await agent_.run();
    if (cluster_ != nullptr) co_await cluster_->reporter().drain(std::chrono::seconds{2});
  };
  if (shutdown_ != nullptr)
    spawn_beside(executor_, shutdown_->run(), "pods are not ended before the machine shuts down");
  std::exception_ptr thrown;
  asio::co_spawn(executor_, guard(), [this, &thrown](std::exception_ptr exception) {
    thrown = std::move(exception);
    given_.reactor.stop();
  });
  given_.reactor.run();
  server_->shutdown();
  // Whoever started evictd must see that it did not end by itself, and why.
  if (thrown) std::rethrow_exception(thrown);
}

void NodeGuard::stop() {
  service_.stopping();
  if (shutdown_ != nullptr) shutdown_->stop();
  agent_.stop();
}

int run(const ConfigurationFiles& files, bool dry_run) {
  host::InheritedDescriptors inherited;  // before there are threads
  const auto configuration = load_configuration(files);
  if (!configuration) return wrong_usage(configuration.error());
  const auto& settings = configuration->agent;
  host::set_log_level(log_level(settings.log.level));
  const auto endpoint = cri::parse_endpoint(settings.cri.endpoint);
  if (!endpoint) return wrong_usage(endpoint.error().in("cri.endpoint"));
  const auto api_options = api_server_options(settings);
  if (!api_options) return wrong_usage(api_options.error());

  const auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  if (!hierarchy) return failed(hierarchy.error());
  auto memory = node::NodeMemory::open(*hierarchy, settings.node);
  if (!memory) return wrong_usage(memory.error());
  const auto first_reading = memory->read(std::chrono::steady_clock::now());
  if (!first_reading) return failed(first_reading.error());
  auto pids = node::NodePids::open(*hierarchy, settings.node);
  if (!pids) return failed(pids.error());
  node::NodeDisk disk{settings.node};

  const auto lock = take_node_lock(settings.node);
  if (!lock) return failed(lock.error());
  for (const auto& refusal : host::protect_self(settings.protection)) host::log_warning("{}", refusal);

  asio::io_context reactor{1};
  auto parts = ConfiguredParts::make(reactor.get_executor(), *configuration, first_reading->capacity, dry_run);
  if (!parts) return wrong_usage(parts.error());
  if (!dry_run) wake::lift_old_fence(*hierarchy, memory->pods_cgroup());
  NodeGuard guard{{.reactor = reactor,
                   .files = files,
                   .configuration = *configuration,
                   .endpoint = *endpoint,
                   .api = *api_options,
                   .node = {.hierarchy = *hierarchy, .memory = *memory, .disk = disk, .pids = *pids},
                   .first_reading = *first_reading,
                   .inherited = inherited,
                   .dry_run = dry_run},
                  *std::move(parts)};
  if (const auto begun = guard.begin(); !begun) return failed(begun.error());
  guard.run();
  return 0;
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .description = "Guard this node until SIGTERM",
          .declare =
              [](CLI::App& command) {
                struct Options {
                  ConfigurationFiles files;
                  bool dry_run = false;
                };
                const auto options = std::make_shared<Options>();
                add_file_options(command, options->files);
                command.add_flag("--dry-run", options->dry_run, "decide and report, touch no pod");
                return [options] { return run(options->files, options->dry_run); };
              },
          .by_default = true};
}

}  // namespace evictd::commands
