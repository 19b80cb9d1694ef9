#include "commands/run.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <csignal>
#include <optional>
#include <ranges>
#include <variant>

#include "agent/agent.hpp"
#include "agent/describe.hpp"
#include "agent/pod_ranking.hpp"
#include "api/event_log.hpp"
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
#include "commands/sources.hpp"
#include "cri/endpoint.hpp"
#include "host/descriptor_store.hpp"
#include "host/log.hpp"
#include "host/node_lock.hpp"
#include "host/self_protection.hpp"
#include "node/protected_processes.hpp"
#include "wake/memory_fence.hpp"
#include "wake/turn_watch.hpp"

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

  // What is measured.
  const auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  if (!hierarchy) return failed(hierarchy.error());
  auto memory = node::NodeMemory::open(*hierarchy, settings.node);
  if (!memory) return wrong_usage(memory.error());
  const auto first_reading = memory->read(std::chrono::steady_clock::now());
  if (!first_reading) return failed(first_reading.error());
  auto pids = node::NodePids::open(*hierarchy, settings.node);
  if (!pids) return failed(pids.error());
  node::NodeDisk disk{settings.node};
  node::PodCgroups cgroups{*hierarchy};
  agent::NodeObserver observer{*memory, disk, *pids};

  const auto lock = take_node_lock(settings.node);
  if (!lock) return failed(lock.error());

  // The loop's parts.
  for (const auto& refusal : host::protect_self(settings.protection)) host::log_warning("{}", refusal);
  asio::io_context reactor{1};
  const auto executor = reactor.get_executor();
  host::ServiceManager service{executor};
  cri::Client runtime{executor, *endpoint, std::chrono::ceil<std::chrono::milliseconds>(settings.cri.timeout)};
  pods::CriPods pods{runtime, first_reading->capacity};
  const auto pod_sources = PodSources::make(executor, *configuration);
  if (!pod_sources) return wrong_usage(pod_sources.error());
  agent::UnlistedPods unlisted{{.hierarchy = *hierarchy,
                                .pods_cgroup = memory->pods_cgroup(),
                                .proc = settings.node.proc_mount,
                                .memory_capacity = first_reading->capacity}};
  asio::thread_pool walkers{1};  // directories are walked beside the loop; one walk at a time keeps a disk busy enough
  const node::PodRoots pod_roots{.logs = settings.node.pod_logs_dir, .kubelet = settings.node.kubelet_root};
  node::PodDisk pod_disk{
      executor, walkers.get_executor(), {.roots = pod_roots, .interval = settings.node.disk_usage_interval}};
  agent::PodUsageReader usage{
      {.cgroups = cgroups, .memory = *memory, .disk = pod_disk, .runtime = runtime, .pods = pods}};
  wake::Wakes wakes{executor};
  if (!dry_run) wake::lift_old_fence(*hierarchy, memory->pods_cgroup());
  Sources sources;
  const SourceMaker maker{sources, executor, wakes, *configuration};
  const auto& turns = add<wake::TurnWatch>(sources, executor, wakes);
  auto& deadline = add<wake::Deadline>(sources, executor, wakes);
  auto& fallback = add<wake::FallbackTimer>(sources, executor, wakes, settings.notifier.fallback_interval);
  maker.watch_node({.hierarchy = *hierarchy, .memory = *memory, .disk = disk, .pids = *pids}, dry_run);
  const auto admission = Admission::prepare(*configuration, first_reading->capacity);
  if (!admission) return wrong_usage(admission.error());
  evict::Reaper reaper;
  evict::Evictor evictor{executor,
                         {.runtime = runtime,
                          .hierarchy = *hierarchy,
                          .pods_cgroup = memory->pods_cgroup(),
                          .cgroups = cgroups,
                          .reaper = reaper,
                          .is_protected = [&](pid_t pid) { return node::is_protected(pid, settings.node.proc_mount); }},
                         {.kill = settings.kill.mode,
                          .stop_timeout = settings.eviction.stop_timeout,
                          .cleanup_timeout = settings.eviction.cleanup_timeout}};

  evict::NodeReclaimer reclaimer{runtime};

  // What it tells.
  const auto history = open_event_history(executor, settings.api);
  api::EventLog events{executor,
                       {.history = static_cast<std::size_t>(settings.api.history_limit),
                        .subscriber_queue = static_cast<std::size_t>(settings.api.subscriber_queue)},
                       history != nullptr ? history->take_earlier() : api::EarlierEvents{}};
  if (history != nullptr) history->follow(events);
  agent::Recorder recorder{events};
  RestartState restart{dry_run ? "" : settings.eviction.state_file, inherited};
  LiveThresholds thresholds{executor, files, *configuration, first_reading->observations, restart.live_thresholds()};
  const auto cluster = ClusterReports::make(executor, *configuration, dry_run);
  if (!cluster) return wrong_usage(cluster.error());
  agent::Agent agent{executor,
                     thresholds.policy(),
                     agent_options(settings, pod_roots, thresholds.evictions_after_start(), dry_run),
                     {.observer = observer,
                      .usage = usage,
                      .disk = disk,
                      .cgroups = cgroups,
                      .pod_disk = pod_disk,
                      .pods = pods,
                      .catalog = (*pod_sources)->catalog(),
                      .unlisted = unlisted,
                      .runtime = runtime,
                      .wakes = wakes,
                      .deadline = deadline,
                      .fallback = fallback,
                      .sources = sources,
                      .evictor = evictor,
                      .reclaimer = reclaimer,
                      .recorder = recorder,
                      .service = service,
                      .cluster = *cluster != nullptr ? &(*cluster)->reporter() : nullptr}};
  const auto shutdown =
      make_node_shutdown(executor, *configuration, dry_run, host::InhibitorLock::inherited(inherited),
                         {.agent = agent, .pods = pods, .catalog = (*pod_sources)->catalog(), .events = events});
  maker.watch_pods(agent, **pod_sources, *hierarchy, *memory, pod_roots);
  thresholds.begin(agent, recorder);
  restart.begin(agent, thresholds);
  maker.watch_configuration([&thresholds] { thresholds.files_changed(); });
  (*admission)->begin({.agent = agent, .recorder = recorder, .sources = **pod_sources, .shutting_down = [&] {
                         return shutdown != nullptr && shutdown->shutting_down();
                       }});
  const auto started = agent::wall_time(std::chrono::steady_clock::now());
  const auto status = [&] {
    auto status = agent.status();
    status.set_version(EVICTD_VERSION);
    *status.mutable_started() = started;
    if (shutdown != nullptr) *status.mutable_shutdown() = shutdown->status();
    *status.mutable_reactor() = agent::describe_reactor(turns.lateness());
    thresholds.add_to(status);
    return status;
  };
  api::Handlers handlers{.status = status, .admitter = (*admission)->admitter(), .audit = [&](const v1::Audit& audit) {
                           recorder.audit(audit);
                         }};
  thresholds.answer(handlers);
  handlers.rank_pods = [&](const v1::RankPodsRequest& request) { return agent::rank_pods(agent, request); };
  const auto monitoring = Monitoring::make(executor, settings.http);
  if (!monitoring) return wrong_usage(monitoring.error());
  api::Server server{*api_options, events, std::move(handlers)};
  if (auto listening = start(server, *api_options); !listening) return failed(listening.error());

  if (*monitoring != nullptr)
    if (auto begun = (*monitoring)->begin({.events = events, .runtime = runtime, .status = status}); !begun)
      return failed(begun.error());

  asio::signal_set signals{reactor, SIGINT, SIGTERM};
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    service.stopping();
    if (shutdown != nullptr) shutdown->stop();
    agent.stop();
  });
  for (const auto& remark : configuration->found) host::log_info("{}", remark);
  say_what_is_guarded(memory->node_cgroup(), node::name(hierarchy->version()), first_reading->capacity,
                      thresholds.policy(), dry_run);
  if (settings.protection.lock_memory)
    if (const auto locked = host::lock_memory(); !locked) host::log_warning("{}", locked.error().message);
  const auto guard = [&]() -> asio::awaitable<void> {
    co_await agent.run();
    if (*cluster != nullptr) co_await (*cluster)->reporter().drain(std::chrono::seconds{2});
  };
  if (shutdown != nullptr) asio::co_spawn(reactor, shutdown->run(), asio::detached);
  asio::co_spawn(reactor, guard(), [&](std::exception_ptr) { reactor.stop(); });
  reactor.run();
  server.shutdown();
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
