#include "commands/node_guard.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <ranges>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/pod_ranking.hpp"
#include "agent/status.hpp"
#include "async/side_thread.hpp"
#include "async/spawn.hpp"
#include "commands/api_server.hpp"
#include "commands/node_shutdown.hpp"
#include "core/eviction_settings.hpp"
#include "core/threshold.hpp"
#include "host/end_deadline.hpp"
#include "host/inhibitor_lock.hpp"
#include "host/self_protection.hpp"
#include "kube/node_mirror.hpp"
#include "node/cgroup.hpp"
#include "node/protected_processes.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::commands {
namespace {

/// What ends orderly, with a disk that hangs, takes some 10 s at most: 5 for the events' disk, and 0.5 for each thread
/// that is held up. The unit's TimeoutStopSec is 15 s.
constexpr std::chrono::seconds longest_end{12};

void say_what_is_guarded(const std::string& node, std::string_view hierarchy, std::int64_t memory,
                         const core::EvictionPolicy& policy, bool dry_run) {
  os::log_info("evictd {} guards {} ({}, {} of memory) with {} thresholds{}", EVICTD_VERSION, node, hierarchy,
               agent::human_bytes(memory), policy.thresholds.size(), dry_run ? "; dry run: nothing is evicted" : "");
  const auto in_words = [](const core::Threshold& threshold) { return core::to_string(threshold); };
  os::log_info("it acts on {}", fmt::join(policy.thresholds | std::views::transform(in_words), ", "));
}

}  // namespace

Result<ConfiguredParts> ConfiguredParts::make(const asio::any_io_executor& reactor, const Configuration& configuration,
                                              bool dry_run) {
  auto pod_sources = PodSources::make(reactor, configuration);
  if (!pod_sources) return std::unexpected(pod_sources.error());
  auto admission = prepare_admission(configuration);
  if (!admission) return std::unexpected(admission.error());
  auto cluster = ClusterReports::make(reactor, configuration, dry_run);
  if (!cluster) return std::unexpected(cluster.error());
  if (const auto checked = check_monitoring(configuration.agent.http); !checked)
    return std::unexpected(checked.error());
  return ConfiguredParts{*std::move(pod_sources), *std::move(admission), *std::move(cluster)};
}

NodeGuard::NodeGuard(const Given& given, ConfiguredParts parts)
    : given_{given},
      pod_sources_{std::move(parts.pod_sources)},
      cluster_{std::move(parts.cluster)},
      shutdown_{make_node_shutdown(
          executor_, given_.configuration, given_.dry_run, host::InhibitorLock::inherited(given_.inherited),
          {.evictions = evictions_, .pods = pods_, .catalog = pod_sources_->catalog(), .events = events_})},
      admission_{given_.configuration,
                 given_.first_reading.capacity,
                 std::move(parts.admission),
                 {.agent = agent_,
                  .reports = reports_,
                  .pods = pod_tracker_,
                  .evictions = evictions_,
                  .recorder = recorder_,
                  .sources = *pod_sources_,
                  .shutdown = shutdown_.get()}},
      monitoring_{
          Monitoring::make(executor_, settings_.http, {.events = events_, .runtime = runtime_, .status = *this})},
      server_{given_.api, events_, handlers()} {
  source_maker_.watch_node(node_, given_.dry_run);
  source_maker_.watch_pods(pod_tracker_, local_storage_, *pod_sources_, node_.hierarchy, node_.memory, pod_roots_);
  source_maker_.watch_configuration([this] { thresholds_.files_changed(); });
  restart_.begin(restartable(), thresholds_.live(), events_);
}

evict::Evictor::Parts NodeGuard::means_of_eviction() {
  return {.runtime = runtime_,
          .hierarchy = node_.hierarchy,
          .pods_cgroup = node_.memory.pods_cgroup(),
          .cgroups = cgroups_,
          .reaper = reaper_,
          .is_protected = [this](pid_t pid) { return node::is_protected(pid, settings_.node.proc_mount); }};
}

node::PodDisk::MakeWorker NodeGuard::walkers() const {
  return [reactor = executor_]() -> std::unique_ptr<async::Worker> {
    try {
      return std::make_unique<async::SideThread>(reactor, "walker");
    } catch (const std::system_error&) {
      return nullptr;  // the node has no process ids left
    }
  };
}

kube::Reporter* NodeGuard::cluster() const { return cluster_ != nullptr ? &cluster_->reporter() : nullptr; }

agent::AgentOptions NodeGuard::agent_options() const {
  return {.synchronizer = {.back_off = settings_.eviction.back_off,
                           .max_evictions_per_minute = static_cast<std::size_t>(settings_.eviction.max_per_minute),
                           .evictions_in_first_minute = start_.evictions_in_first_minute},
          .dry_run = given_.dry_run};
}

agent::Agent::Parts NodeGuard::agent_parts() {
  return {.observer = observer_,
          .usage = usage_,
          .recorder = recorder_,
          .evictions = evictions_,
          .pods = pod_tracker_,
          .reclaimer = reclaimer_,
          .alarms = alarms_,
          .reports = reports_};
}

agent::PodTracker::Parts NodeGuard::pod_tracker_parts() {
  return {.runtime = runtime_,
          .events = runtime_events_,
          .pods = pods_,
          .catalog = pod_sources_->catalog(),
          .unlisted = unlisted_,
          .volumes = volumes_,
          .cgroups = cgroups_,
          .usage = usage_,
          .storage = local_storage_,
          .evictions = evictions_,
          .log = recorder_,
          .decisions = agent_,
          .state = restart_,
          .wakes = wakes_,
          .clock = clock_};
}

agent::Evictions::Parts NodeGuard::evictions_parts() {
  return {.stopper = evictor_,
          .pods = pod_tracker_,
          .usage = usage_,
          .observer = observer_,
          .log = recorder_,
          .decisions = agent_,
          .reports = reports_,
          .state = restart_,
          .wakes = wakes_,
          .clock = clock_,
          .cluster = cluster()};
}

agent::RuntimeWatch::Parts NodeGuard::runtime_watch_parts() {
  return {.runtime = runtime_,
          .reclaimer = reclaimer_,
          .disk = node_.disk,
          .pods = pod_tracker_,
          .events = runtime_events_,
          .alarms = alarms_,
          .clock = clock_};
}

agent::Restartable NodeGuard::restartable() {
  return {.agent = agent_, .evictions = evictions_, .reports = reports_, .cgroups = cgroups_};
}

v1::NodeStatus NodeGuard::status() {
  auto status = agent::describe_status({.agent = agent_,
                                        .reports = reports_,
                                        .evictions = evictions_,
                                        .usage = usage_,
                                        .alarms = alarms_,
                                        .recorder = recorder_,
                                        .runtime_watch = runtime_watch_,
                                        .runtime = runtime_,
                                        .pods = pods_,
                                        .catalog = pod_sources_->catalog(),
                                        .disk = node_.disk,
                                        .cluster = cluster()},
                                       clock_.now());
  status.set_dry_run(given_.dry_run);
  status.set_version(EVICTD_VERSION);
  *status.mutable_started() = started_;
  if (shutdown_ != nullptr) *status.mutable_shutdown() = shutdown_->status();
  *status.mutable_reactor() = agent::describe_reactor(turns_.lateness());
  thresholds_.add_to(status);
  return status;
}

api::Answer<v1::RankPodsResponse> NodeGuard::rank_pods(const v1::RankPodsRequest& request) {
  return agent::rank_pods({.policy = agent_.synchronizer(), .pods = pod_tracker_, .usage = usage_}, request);
}

api::Handlers NodeGuard::handlers() {
  return {.status = *this, .admitter = &admission_, .thresholds = &thresholds_, .ranking = this, .auditor = &recorder_};
}

Result<void> NodeGuard::begin() {
  if (auto* node = pod_sources_->node()) node->start();
  if (auto listening = start(server_, given_.api); !listening) return listening;
  return monitoring_ != nullptr ? monitoring_->start() : Result<void>{};
}

void NodeGuard::run() {
  asio::signal_set signals{executor_, SIGINT, SIGTERM};
  signals.async_wait([this](boost::system::error_code error, int) {
    if (!error) stop();
  });
  host::end_within(longest_end);
  for (const auto& remark : given_.configuration.found) os::log_info("{}", remark);
  say_what_is_guarded(node_.memory.node_cgroup(), node::name(node_.hierarchy.version()), given_.first_reading.capacity,
                      thresholds_.policy(), given_.dry_run);
  if (const auto locked = host::lock_memory(); !locked) os::log_warning("{}", locked.error().message);
  const auto guard = [this]() -> asio::awaitable<void> {
    pod_tracker_.start();
    async::spawn(executor_, local_storage_.run(), "local storage limits");
    runtime_watch_.start();
    co_await agent_.run();
    if (cluster() != nullptr) co_await cluster()->drain(std::chrono::seconds{2});
    given_.reactor.stop();
  };
  if (shutdown_ != nullptr)
    async::spawn_contained(executor_, shutdown_->run(), [](const std::string& reason) {
      os::log_error("pods are not ended before the machine shuts down until evictd restarts: {}", reason);
    });
  async::spawn(executor_, guard(), "guarding the node");
  given_.reactor.run();
  restart_.save();
  server_.shutdown();
}

void NodeGuard::stop() {
  service_.stopping();
  if (shutdown_ != nullptr) shutdown_->stop();
  pod_tracker_.stop();
  local_storage_.stop();
  runtime_watch_.stop();
  agent_.stop();
}

}  // namespace evictd::commands
