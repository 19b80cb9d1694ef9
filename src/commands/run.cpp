#include "commands/run.hpp"

#include <evictd.pb.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "agent/agent.hpp"
#include "agent/describe.hpp"
#include "api/event_log.hpp"
#include "api/server.hpp"
#include "commands/configuration.hpp"
#include "cri/endpoint.hpp"
#include "host/log.hpp"
#include "wake/cgroup_watch.hpp"
#include "wake/directory_watch.hpp"
#include "wake/gauges.hpp"
#include "wake/memcg_threshold.hpp"
#include "wake/pod_files.hpp"
#include "wake/sampler.hpp"

namespace asio = boost::asio;

namespace evictd::commands {
namespace {

host::LogLevel log_level(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::Error: return host::LogLevel::Error;
    case config::LogLevel::Warn: return host::LogLevel::Warning;
    case config::LogLevel::Info: return host::LogLevel::Info;
    case config::LogLevel::Debug: return host::LogLevel::Debug;
  }
  return host::LogLevel::Info;
}

using Sources = std::vector<std::unique_ptr<wake::Source>>;

/// Adds a source that others speak to as well.
template <class S, class... Args>
S& add(Sources& sources, Args&&... args) {
  auto source = std::make_unique<S>(std::forward<Args>(args)...);
  auto& reference = *source;
  sources.push_back(std::move(source));
  return reference;
}

Sources make_sources(const asio::any_io_executor& reactor, wake::Wakes& wakes, const config::NotifierSettings& settings,
                     const node::CgroupHierarchy& hierarchy, const node::NodeMemory& memory, const node::NodeDisk& disk,
                     const node::NodePids& pids) {
  Sources sources;
  wake::KernelThresholds kernel;
  if (settings.memcg && hierarchy.version() == node::CgroupVersion::v1) {
    using enum core::Signal;
    kernel.node = &add<wake::MemcgThreshold>(sources, reactor, wakes, MemoryAvailable, hierarchy, memory.node_cgroup());
    kernel.pods = &add<wake::MemcgThreshold>(sources, reactor, wakes, AllocatableMemoryAvailable, hierarchy,
                                             memory.pods_cgroup());
  }
  // Armed after the kernel's thresholds, whose state it goes by.
  if (auto gauges = wake::make_gauges(settings, memory, disk, pids, kernel); !gauges.empty())
    add<wake::Sampler>(sources, reactor, wakes, std::move(gauges));
  return sources;
}

/// The whole configuration is read at the start; a change is checked now, so that the next start holds no surprise.
void check_changed(const ConfigurationFiles& files) {
  if (const auto changed = load_configuration(files); !changed)
    host::log_warning("the configuration changed, and evictd would not start with it: {}", changed.error().message);
  else
    host::log_info("the configuration changed; restart evictd for it to take effect");
}

std::vector<std::filesystem::path> configuration_paths(const Configuration& configuration) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : {configuration.agent_file, configuration.kubelet_file})
    if (file) paths.push_back(std::filesystem::absolute(*file));
  return paths;
}

/// What is watched of the file systems.
void add_file_sources(Sources& sources, const asio::any_io_executor& reactor, wake::Wakes& wakes,
                      const Configuration& configuration, const ConfigurationFiles& files, agent::Agent& agent,
                      const node::PodRoots& roots) {
  const auto& settings = configuration.agent.notifier;
  if (settings.files != config::FilesNotifier::Off)
    add<wake::PodFilesWatch>(
        sources, reactor, wakes,
        wake::PodFilesOptions{
            .by = settings.files, .interval = settings.files_interval, .roots = {roots.kubelet, roots.logs}},
        [&agent](const std::string& uid) { agent.files_changed(uid); });
  using Directories = std::vector<std::filesystem::path>;
  const auto watch = [&](wake::DirectoryWatchOptions options, wake::DirectoryWatch::Directories directories,
                         std::function<void()> on_change) {
    options.interval = settings.files_interval;
    add<wake::DirectoryWatch>(sources, reactor, wakes, std::move(options), std::move(directories),
                              std::move(on_change));
  };
  // containerd's snapshotter: its database lies in the directory itself, its layers in "snapshots".
  watch({.name = "images", .detail = "images or layers came or went"},
        [](const wake::Arming& arming) {
          return arming.images.empty() ? Directories{} : Directories{arming.images, arming.images / "snapshots"};
        },
        {});
  if (const auto paths = configuration_paths(configuration); !paths.empty()) {
    wake::DirectoryWatchOptions options{.name = "configuration", .detail = "the configuration changed"};
    options.names.insert("..data");  // by which Kubernetes replaces the files of a mounted ConfigMap
    Directories directories;
    for (const auto& path : paths) {
      options.names.insert(path.filename());
      if (std::ranges::find(directories, path.parent_path()) == directories.end())
        directories.push_back(path.parent_path());
    }
    watch(
        std::move(options), [directories](const wake::Arming&) { return directories; },
        [files] { check_changed(files); });
  }
  if (const auto& manifests = configuration.kubelet.static_pod_path; !manifests.empty())
    watch(
        {.name = "manifests", .detail = "static pods changed"},
        [manifests](const wake::Arming&) { return Directories{manifests}; }, [&agent] { agent.pods_changed(); });
}

api::ServerOptions server_options(const config::ApiSettings& settings) {
  return {.socket = settings.socket,
          .group = settings.group,
          .write_timeout = std::chrono::ceil<std::chrono::milliseconds>(settings.write_timeout),
          .warn = [](const std::string& line) { host::log_warning("{}", line); }};
}

/// /run is empty after a boot; where systemd does not make the socket's directory, we do.
Result<void> make_socket_directory(const std::string& socket) {
  const auto directory = std::filesystem::path(socket).parent_path();
  std::error_code error;
  std::filesystem::create_directory(directory, error);
  if (error) return fail(fmt::format("api.socket: {} cannot be made: {}", directory.native(), error.message()));
  return {};
}

int run(const ConfigurationFiles& files, bool dry_run) {
  const auto configuration = load_configuration(files);
  if (!configuration) return wrong_usage(configuration.error());
  const auto& settings = configuration->agent;
  host::set_log_level(log_level(settings.log.level));
  const auto endpoint = cri::parse_endpoint(settings.cri.endpoint);
  if (!endpoint) return wrong_usage(endpoint.error().in("cri.endpoint"));

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

  // The loop's parts.
  asio::io_context reactor{1};
  const auto executor = reactor.get_executor();
  host::ServiceManager service{executor};
  cri::Client runtime{executor, *endpoint, std::chrono::ceil<std::chrono::milliseconds>(settings.cri.timeout)};
  pods::CriPods pods{runtime, first_reading->capacity};
  asio::thread_pool walkers{1};  // directories are walked beside the loop; one walk at a time keeps a disk busy enough
  const node::PodRoots pod_roots{.logs = settings.node.pod_logs_dir, .kubelet = settings.node.kubelet_root};
  node::PodDisk pod_disk{
      executor, walkers.get_executor(), {.roots = pod_roots, .interval = settings.node.disk_usage_interval}};
  agent::PodUsageReader usage{cgroups, pod_disk, runtime, pods};
  wake::Wakes wakes{executor};
  auto sources = make_sources(executor, wakes, settings.notifier, *hierarchy, *memory, disk, *pids);
  auto& deadline = add<wake::Deadline>(sources, executor, wakes);
  auto& fallback = add<wake::FallbackTimer>(sources, executor, wakes, settings.notifier.fallback_interval);
  evict::Evictor evictor{
      executor,
      runtime,
      cgroups,
      {.stop_timeout = settings.eviction.stop_timeout, .cleanup_timeout = settings.eviction.cleanup_timeout}};

  evict::NodeReclaimer reclaimer{runtime};

  // What it tells.
  api::EventLog events{executor,
                       {.history = static_cast<std::size_t>(settings.api.history_limit),
                        .subscriber_queue = static_cast<std::size_t>(settings.api.subscriber_queue)}};
  agent::Recorder recorder{events};
  agent::Agent agent{executor,
                     configuration->policy,
                     {.refresh_interval = settings.cri.refresh_interval,
                      .cleanup_timeout = settings.eviction.cleanup_timeout,
                      .pod_roots = pod_roots,
                      .dry_run = dry_run},
                     {.observer = observer,
                      .usage = usage,
                      .disk = disk,
                      .cgroups = cgroups,
                      .pod_disk = pod_disk,
                      .pods = pods,
                      .runtime = runtime,
                      .wakes = wakes,
                      .deadline = deadline,
                      .fallback = fallback,
                      .sources = sources,
                      .evictor = evictor,
                      .reclaimer = reclaimer,
                      .recorder = recorder,
                      .service = service}};
  const auto directory = [&](const std::string& cgroup) { return hierarchy->root().path() + cgroup; };
  add<wake::CgroupWatch>(sources, executor, wakes, directory(memory->node_cgroup()), directory(memory->pods_cgroup()),
                         [&] { agent.pods_changed(); });
  add_file_sources(sources, executor, wakes, *configuration, files, agent, pod_roots);
  const auto started = agent::wall_time(std::chrono::steady_clock::now());
  api::Server server{server_options(settings.api), events, [&] {
                       auto status = agent.status();
                       status.set_version(EVICTD_VERSION);
                       *status.mutable_started() = started;
                       return status;
                     }};
  if (!settings.api.socket.empty()) {
    if (auto made = make_socket_directory(settings.api.socket); !made) return failed(made.error());
    if (auto listening = server.start(); !listening) return failed(listening.error());
    server.set_serving(true);
  }

  asio::signal_set signals{reactor, SIGINT, SIGTERM};
  signals.async_wait([&](boost::system::error_code error, int) {
    if (error) return;
    service.stopping();
    agent.stop();
  });
  host::log_info("evictd {} guards {} ({}, {} of memory) with {} thresholds{}", EVICTD_VERSION, memory->node_cgroup(),
                 node::name(hierarchy->version()), agent::human_bytes(first_reading->capacity),
                 configuration->policy.thresholds.size(), dry_run ? "; dry run: nothing is evicted" : "");
  asio::co_spawn(reactor, agent.run(), [&](std::exception_ptr) { reactor.stop(); });
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
