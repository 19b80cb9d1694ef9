#include "app/agent.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/agent.hpp"
#include "agent/alarms.hpp"
#include "agent/clock.hpp"
#include "agent/condition_times.hpp"
#include "agent/decider.hpp"
#include "agent/disk_wakes.hpp"
#include "agent/eviction_records.hpp"
#include "agent/evictions.hpp"
#include "agent/inferred_volumes.hpp"
#include "agent/local_storage.hpp"
#include "agent/node_observer.hpp"
#include "agent/node_reports.hpp"
#include "agent/pod_tracker.hpp"
#include "agent/pod_usage.hpp"
#include "agent/readiness.hpp"
#include "agent/recorder.hpp"
#include "agent/restart.hpp"
#include "agent/runtime_events.hpp"
#include "agent/runtime_watch.hpp"
#include "agent/unlisted_pods.hpp"
#include "app/agent_parts.hpp"
#include "app/all_hooks.hpp"
#include "app/answers.hpp"
#include "app/api_server.hpp"
#include "app/black_box.hpp"
#include "app/device_plugins.hpp"
#include "app/event_history.hpp"
#include "app/kernel_killer.hpp"
#include "app/kubelet_processes.hpp"
#include "app/live_thresholds.hpp"
#include "app/monitoring.hpp"
#include "app/node_shutdown.hpp"
#include "app/place_watch.hpp"
#include "app/pod_holder.hpp"
#include "app/sources.hpp"
#include "app/trimming.hpp"
#include "async/side_thread.hpp"
#include "async/spawn.hpp"
#include "config/agent_configuration.hpp"
#include "cri/client.hpp"
#include "evict/evictor.hpp"
#include "evict/kill.hpp"
#include "evict/log_reclaim.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/protection.hpp"
#include "evict/ready_strike.hpp"
#include "host/end_deadline.hpp"
#include "host/inhibitor_lock.hpp"
#include "host/self_protection.hpp"
#include "host/systemd.hpp"
#include "kube/node_mirror.hpp"
#include "node/pod_cgroups.hpp"
#include "node/pod_directories.hpp"
#include "node/pod_disk.hpp"
#include "os/exit_code.hpp"
#include "os/file_descriptor.hpp"
#include "os/log.hpp"
#include "pods/cri_pods.hpp"
#include "pods/trust.hpp"
#include "state/found_state.hpp"
#include "wake/deadline.hpp"
#include "wake/fallback_timer.hpp"
#include "wake/wakes.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {

int guard_node(asio::io_context& reactor, Checked checked, const Host& host) {
  const auto executor = reactor.get_executor();
  const auto& settings = checked.configuration.agent;
  const auto& first = host.first_reading;
  const auto dry_run = checked.dry_run;
  auto& catalog = checked.pod_sources->catalog();
  auto* const cluster = checked.cluster_reports != nullptr ? &checked.cluster_reports->reporter() : nullptr;
  agent::SteadyClock clock;

  // What an earlier evictd left, the history of events, and the thresholds to begin with.
  auto found = state::FoundState::read(dry_run ? "" : config::runtime_files(settings).state,
                                       os::FileDescriptor{host.inherited.take(state::stored_name)});
  EventHistory history{executor, settings, found.events()};
  auto& events = history.log();
  agent::Recorder recorder{events};
  auto start = LiveThresholds::at_start(checked.configuration, first.observations, found.live_thresholds());

  // The pods, and what they and the node use.
  cri::Client runtime{executor, checked.endpoint, std::chrono::ceil<std::chrono::milliseconds>(settings.cri.timeout)};
  pods::CriPods pods{runtime, first.capacity, pods::TrustedNamespaces{settings.pod_sources.trusted_namespaces}};
  agent::UnlistedPods unlisted{{.hierarchy = host.node.hierarchy,
                                .pods_cgroup = host.node.memory.pods_cgroup(),
                                .proc = settings.node.proc_mount,
                                .memory_capacity = first.capacity}};
  node::PodCgroups cgroups{host.node.hierarchy};
  const node::PodRoots roots{.logs = settings.node.pod_logs_dir,
                             .kubelet = settings.node.kubelet_root,
                             .layers = std::make_shared<node::LayerMounts>(settings.node.proc_mount)};
  node::PodDisk pod_disk{executor, walkers(executor), {.roots = roots, .interval = settings.node.disk_usage_interval}};
  agent::PodUsageReader usage{
      {.cgroups = cgroups, .memory = host.node.memory, .disk = pod_disk, .runtime = runtime, .pods = pods}};
  agent::InferredVolumes volumes{std::make_unique<async::SideThread>(executor, "volumes"), roots};
  agent::NodeObserver observer{host.node.memory, host.node.disk, host.node.readers};

  // What wakes it.
  wake::Wakes wakes{executor};
  Sources sources;
  const SourceMaker source_maker{sources, executor, wakes, checked.configuration};
  const auto& turns = source_maker.watch_loop(host.node);
  auto& deadline = add<wake::Deadline>(sources, executor, wakes);
  auto& fallback = add<wake::FallbackTimer>(sources, executor, wakes, settings.notifier.fallback_interval);
  agent::DiskWakes disk_wakes{host.node.disk, wakes, recorder, clock};
  agent::Alarms alarms{
      {.wakes = wakes, .deadline = deadline, .fallback = fallback, .sources = sources, .disks = &disk_wakes}};

  // What survives a restart, and goes on where the evictd before this one ended.
  agent::Decider decider{start.policy,
                         {.back_off = settings.eviction.back_off,
                          .max_evictions_per_minute = static_cast<std::size_t>(settings.eviction.max_per_minute),
                          .evictions_in_first_minute = start.evictions_in_first_minute,
                          .acts = !dry_run},
                         clock,
                         deadline};
  agent::EvictionRecords records;
  agent::ConditionTimes conditions;
  const agent::Survivors survivors{.decider = decider, .evictions = records, .conditions = conditions};
  if (found.file)
    agent::restore(found.state, survivors, cgroups, recorder, settings.eviction.cleanup_timeout, clock.now());
  agent::RestartState state{std::move(found), {.agent = survivors, .live = start.live, .events = events}};

  // What it tells and does.
  host::ServiceManager service{executor};
  agent::NodeReports reports{
      {.observer = observer, .service = service, .state = state, .conditions = conditions, .cluster = cluster}};
  agent::LocalStorage local_storage{
      executor,
      {.roots = roots, .longest_wait = agent::PodTracker::usual_interval},
      {.disk = pod_disk, .usage = usage, .pods = pods, .catalog = catalog, .alarms = alarms, .clock = clock}};
  agent::RuntimeEvents runtime_events{executor, runtime, clock, checked.configuration.kubelet.evented_pleg()};
  agent::PodTracker pod_tracker{executor,
                                agent::PodTracker::usual_interval,
                                {.runtime = runtime,
                                 .events = runtime_events,
                                 .pods = pods,
                                 .catalog = catalog,
                                 .unlisted = unlisted,
                                 .volumes = volumes,
                                 .cgroups = cgroups,
                                 .usage = usage,
                                 .storage = local_storage,
                                 .evictions = records,
                                 .log = recorder,
                                 .decisions = decider,
                                 .state = state,
                                 .wakes = wakes,
                                 .clock = clock,
                                 .cluster = cluster}};
  evict::Reaper reaper;
  const auto is_protected = protection(settings);
  evict::ReadyStrike ready{{.hierarchy = host.node.hierarchy,
                            .cgroups = cgroups,
                            .is_protected = is_protected,
                            .proc = settings.node.proc_mount}};
  KubeletProcesses kubelet{settings.node.proc_mount};
  const auto hooks = hooks_before_kills(executor, settings.hooks, dry_run);
  const auto holder = make_pod_holder(executor, settings, dry_run, is_protected);
  evict::Evictor evictor{executor,
                         {.runtime = runtime,
                          .hierarchy = host.node.hierarchy,
                          .pods_cgroup = host.node.memory.pods_cgroup(),
                          .cgroups = cgroups,
                          .reaper = reaper,
                          .kubelet_root = settings.node.kubelet_root,
                          .is_protected = is_protected,
                          .kubelet = kubelet,
                          .ready = &ready,
                          .holder = holder.get(),
                          .memory = &host.node.memory,
                          .hooks = hooks.get()},
                         {.direct_kill = settings.kill.mode == config::KillMode::Fast,
                          .stop_timeout = settings.eviction.stop_timeout,
                          .cleanup_timeout = settings.eviction.cleanup_timeout,
                          .remove_volumes = who_removes_volumes(settings),
                          .held_end = held_end(settings)}};
  const auto explainer = make_black_box(executor, settings, dry_run);
  agent::Readiness readiness{{.policy = decider.synchronizer(),
                              .usage = usage,
                              .pods = pod_tracker,
                              .strike = ready,
                              .log = recorder,
                              .state = state,
                              .clock = clock,
                              .black_box = explainer.get()}};
  const bool strikes = settings.kill.mode == config::KillMode::Fast && !dry_run;
  if (strikes) pod_tracker.tell_later(readiness);
  agent::Evictions evictions{executor,
                             {.cleanup_timeout = settings.eviction.cleanup_timeout, .dry_run = dry_run},
                             {.records = records,
                              .stopper = evictor,
                              .pods = pod_tracker,
                              .usage = usage,
                              .observer = observer,
                              .log = recorder,
                              .decisions = decider,
                              .reports = reports,
                              .state = state,
                              .wakes = wakes,
                              .clock = clock,
                              .cluster = cluster,
                              .black_box = explainer.get(),
                              .policy = &decider.synchronizer(),
                              .kubelet = &kubelet}};
  pod_tracker.tell(evictions);
  const KernelKiller kernel_killer{source_maker,
                                   {.policy = decider.synchronizer(),
                                    .usage = usage,
                                    .pods = pod_tracker,
                                    .records = records,
                                    .evictions = evictions,
                                    .recorder = recorder,
                                    .clock = clock,
                                    .node = host.node,
                                    .capacity = first.capacity,
                                    .dry_run = dry_run,
                                    .others_prepare = strikes}};

  // The loop, and what changes its thresholds.
  // A pod of which anybody knows is not gone, and its logs stay.
  const auto is_known = [&](std::string_view uid) {
    return catalog.may_know(uid) || records.remembers(uid) || !unlisted.cgroup_of(uid).empty();
  };
  evict::LogReclaimer logs{executor, runtime, std::make_unique<async::SideThread>(executor, "logs"),
                           settings.node.pod_logs_dir, is_known};
  evict::NodeReclaimer reclaimer{
      runtime, {.minimum_image_age = checked.configuration.kubelet.image_minimum_gc_age}, &logs};
  const auto trimming = Trimming::make(executor, settings, dry_run,
                                       {.policy = decider.synchronizer(),
                                        .usage = usage,
                                        .pods = pod_tracker,
                                        .hierarchy = host.node.hierarchy,
                                        .clock = clock,
                                        .wakes = wakes,
                                        .evictions = evictions,
                                        .reports = reports,
                                        .recorder = recorder});
  auto* const trimmer = trimming != nullptr ? &trimming->trimmer() : nullptr;
  agent::Agent agent{executor,
                     clock,
                     decider,
                     {.observer = observer,
                      .usage = usage,
                      .recorder = recorder,
                      .evictions = evictions,
                      .pods = pod_tracker,
                      .reclaimer = reclaimer,
                      .alarms = alarms,
                      .reports = reports}};
  LiveThresholds thresholds{
      executor,
      {.files = checked.files, .configuration = checked.configuration, .dry_run = dry_run},
      start,
      {.agent = agent, .evictions = evictions, .reports = reports, .recorder = recorder, .live = start.live}};

  // What goes on beside the loop.
  agent::RuntimeWatch runtime_watch{executor,
                                    {.runtime = runtime,
                                     .reclaimer = reclaimer,
                                     .disk = host.node.disk,
                                     .pods = pod_tracker,
                                     .events = runtime_events,
                                     .alarms = alarms,
                                     .clock = clock}};
  const auto shutdown =
      make_node_shutdown(executor, checked.configuration, dry_run, host::InhibitorLock::inherited(host.inherited),
                         {.evictions = evictions,
                          .pods = pods,
                          .tracker = pod_tracker,
                          .catalog = catalog,
                          .events = events,
                          .cluster = cluster});
  const auto device_plugins =
      dry_run ? nullptr
              : DevicePlugins::make(executor, checked.configuration, checked.admission.plugin_resources, kubelet);
  Admission admission{executor,
                      checked.configuration,
                      {.memory_capacity = first.capacity, .dry_run = dry_run},
                      std::move(checked.admission),
                      {.runtime = runtime,
                       .runtime_pods = pods,
                       .clock = clock,
                       .reports = reports,
                       .pods = pod_tracker,
                       .evictions = evictions,
                       .recorder = recorder,
                       .sources = *checked.pod_sources,
                       .plugins = device_plugins.get(),
                       .shutdown = shutdown.get()}};

  // Whom it answers.
  Answers answers{{.status = {.synchronizer = decider.synchronizer(),
                              .reports = reports,
                              .evictions = evictions,
                              .records = records,
                              .usage = usage,
                              .alarms = alarms,
                              .recorder = recorder,
                              .runtime_watch = runtime_watch,
                              .runtime = runtime,
                              .pods = pods,
                              .catalog = catalog,
                              .disk = host.node.disk,
                              .cluster = cluster},
                   .ranking = {.policy = decider.synchronizer(), .pods = pod_tracker, .usage = usage},
                   .thresholds = thresholds,
                   .turns = turns,
                   .shutdown = shutdown.get(),
                   .dry_run = dry_run}};
  const auto monitoring =
      Monitoring::make(executor, settings.http, {.events = events, .runtime = runtime, .status = answers});
  api::Server server{checked.api,
                     events,
                     {.status = answers,
                      .admitter = &admission,
                      .thresholds = &thresholds,
                      .ranking = &answers,
                      .auditor = &recorder,
                      .pre_kill = hooks != nullptr ? &hooks->agents() : nullptr}};

  // Connect: the sources that tell these parts, and the sockets.
  source_maker.watch_node(host.node, dry_run, {strikes ? &readiness : nullptr, trimmer, kernel_killer.steering()});
  source_maker.watch_pods(pod_tracker, local_storage, *checked.pod_sources, host.node.hierarchy, host.node.memory,
                          roots);
  source_maker.watch_configuration(thresholds);
  if (auto* node = checked.pod_sources->node()) node->start();
  if (const auto listening = app::start(server, checked.api); !listening) return os::failed(listening.error());
  if (monitoring != nullptr)
    if (const auto listening = monitoring->start(); !listening) return os::failed(listening.error());

  // Run, until somebody ends it.
  int exit_code = 0;
  auto stop = [&, stops = false](int code) mutable {
    if (std::exchange(stops, true)) return;
    exit_code = code;
    service.stopping();
    if (shutdown != nullptr) shutdown->stop();
    pod_tracker.stop();
    local_storage.stop();
    runtime_events.stop();
    runtime_watch.stop();
    admission.stop();
    if (trimmer != nullptr) trimmer->stop();
    agent.stop();
  };
  asio::signal_set signals{executor, SIGINT, SIGTERM};
  signals.async_wait([&](boost::system::error_code error, int) {
    if (!error) stop(0);
  });
  PlaceWatch places{executor, source_maker.files, checked.configuration,
                    [&](const std::string& moved) { stop(os::failed({moved})); }};
  thresholds.tell(places);
  const auto loop = [&]() -> asio::awaitable<void> {
    co_await agent.run();
    if (cluster != nullptr) co_await cluster->drain(2s);
    reactor.stop();
  };
  try {
    host::end_within(longest_end);
    say_what_was_found(checked.configuration);
    say_what_is_guarded(host.node.memory, host.node.hierarchy, first.capacity, thresholds.policy(), dry_run);
    if (const auto locked = host::lock_memory(); !locked) os::log_warning("{}", locked.error().message);
    if (shutdown != nullptr) begin(executor, *shutdown);
    pod_tracker.start();
    runtime_events.start(pod_tracker);
    runtime_watch.start();
    admission.start();
    async::spawn(executor, local_storage.run(), "local storage limits");
    async::spawn(executor, loop(), "guarding the node");
    reactor.run();
    state.save();
    server.shutdown();
  } catch (const std::exception& error) {
    // systemd starts the next evictd only once this one is gone, and what failed may hold up its end.
    host::end_after(5s);
    return os::failed({error.what()});
  }
  return exit_code;
}

}  // namespace evictd::app
