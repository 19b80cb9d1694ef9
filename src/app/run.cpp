#include "app/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "app/admission.hpp"
#include "app/agent.hpp"
#include "app/api_server.hpp"
#include "app/cluster_reports.hpp"
#include "app/configuration.hpp"
#include "app/disarm.hpp"
#include "app/kernel_killer.hpp"
#include "app/monitoring.hpp"
#include "app/pod_holder.hpp"
#include "app/pod_sources.hpp"
#include "app/runtime_offers.hpp"
#include "app/state_directory.hpp"
#include "async/deadline_thread.hpp"
#include "async/spawn.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "cri/endpoint.hpp"
#include "evict/oom_scores.hpp"
#include "host/descriptor_store.hpp"
#include "host/end_deadline.hpp"
#include "host/node_lock.hpp"
#include "host/self_protection.hpp"
#include "node/cgroup.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"
#include "os/exit_code.hpp"
#include "os/log.hpp"
#include "wake/pods_high.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

/// So that nothing on the host is changed by two at once; not in a dry run either, which keeps the same files and
/// sockets. Without a lock where there can be none.
Result<std::optional<host::NodeLock>> take_node_lock(const std::string& file) {
  auto taken = host::NodeLock::take(file, EVICTD_VERSION);
  if (const auto* held = std::get_if<host::NodeLock::Held>(&taken)) return std::unexpected(held->error);
  if (const auto* unusable = std::get_if<host::NodeLock::Unusable>(&taken)) {
    os::log_warning("{}", unusable->error.message);
    return std::nullopt;
  }
  return std::get<host::NodeLock>(std::move(taken));
}

void lift_what_was_left(const node::CgroupHierarchy& hierarchy, const config::AgentConfiguration& settings) {
  wake::lift_old_fence(hierarchy, node::pods_cgroup(settings.node), config::runtime_files(settings).fence);
  let_old_holds_go(hierarchy, settings);
  if (const auto done = evict::restore_left_oom_scores(oom_score_places(settings)); !done.empty())
    os::log_warning("an earlier evictd was killed: {}", done);
}

/// Where evictd cannot start: pods must not stay held until an operator has mended a file. Not beside another evictd.
void lift_without_configuration(const ConfigurationFiles& files) {
  const auto settings = own_settings(files).agent;
  if (!is_something_left(settings)) return;
  const auto [outcome, is_guarded] = disarm(settings);
  if (is_guarded) return;
  os::log_warning("an earlier evictd was killed: {}", outcome ? *outcome : outcome.error().message);
}

asio::awaitable<void> read(node::NodeDisk& disk, std::shared_ptr<bool> done) {
  co_await disk.read_now();
  *done = true;
}

/// So that what was kept of a disk's pressure meets a number in the first pass. A disk that does not answer delays the
/// start by no more than this.
void read_disks(asio::io_context& reactor, node::NodeDisk& disk) {
  constexpr auto patience = 1s;
  const auto done = std::make_shared<bool>(false);
  async::spawn(reactor.get_executor(), read(disk, done), "reading the disks");
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!*done && reactor.run_one_until(give_up) > 0) {
  }
  reactor.restart();
}

/// The reactor, which threads that were left behind may still post to: then the process ends before it does. Without
/// that, who waits for a disk that hangs would keep evictd from ending.
struct Reactor {
  Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor() {
    const auto held_up = async::left_behind();
    if (held_up.empty()) return;
    os::log_warning("it ends although something hangs: {}; does a disk, a name service or a client not answer?",
                    fmt::join(held_up, "; "));
    host::end_now(exit_code);
  }

  asio::io_context context{1};
  int exit_code = 0;
};

}  // namespace

int run_agent(const ConfigurationFiles& files, bool dry_run) {
  // What systemd left to it, before there are threads.
  host::InheritedDescriptors inherited;
  os::log_in_background();

  // Parse.
  auto configuration = load_configuration(files, ask_cgroup_driver);
  if (!configuration) {
    if (!dry_run) lift_without_configuration(files);
    return os::wrong_usage(configuration.error());
  }
  const auto& settings = configuration->agent;
  os::set_log_level(log_level(settings.log.level));

  // Put back what an earlier evictd left, before anything that may end this one.
  const auto hierarchy = node::CgroupHierarchy::detect(settings.node.cgroup_mount);
  if (!hierarchy) return os::failed(hierarchy.error());
  const auto lock = take_node_lock(config::runtime_files(settings).lock);
  if (!lock) return os::failed(lock.error());
  if (!dry_run) lift_what_was_left(*hierarchy, settings);

  // Parse what is left to parse, and leave out what does not answer.
  leave_out_silent_state(*configuration);
  const auto endpoint = cri::parse_endpoint(settings.cri.endpoint);
  if (!endpoint) return os::wrong_usage(endpoint.error().in("cri.endpoint"));
  const auto api = api_server_options(settings);
  if (!api) return os::wrong_usage(api.error());

  // Check the host.
  auto memory = node::NodeMemory::open(*hierarchy, settings.node);
  if (!memory) return os::wrong_usage(memory.error());
  auto first_reading = memory->read(std::chrono::steady_clock::now());
  if (!first_reading) return os::failed(first_reading.error());
  auto pids = node::NodePids::open(*hierarchy, settings.node);
  if (!pids) return os::failed(pids.error());
  if (const auto refusal = host::protect_self()) os::log_warning("{}", *refusal);

  // Build what the configuration may ask for in a way that cannot be; then the rest, connect it, and run.
  Reactor reactor;
  const auto executor = reactor.context.get_executor();
  node::NodeDisk disk{executor, settings.node};
  read_disks(reactor.context, disk);
  const std::vector<node::SignalReader*> readers{&disk, &*pids};
  // What cannot be read is told by the first pass.
  for (auto* reader : readers)
    static_cast<void>(reader->observe(first_reading->observations, std::chrono::steady_clock::now()));
  auto pod_sources = PodSources::make(executor, *configuration);
  if (!pod_sources) return os::wrong_usage(pod_sources.error());
  auto admission = prepare_admission(*configuration);
  if (!admission) return os::wrong_usage(admission.error());
  auto cluster_reports = ClusterReports::make(executor, *configuration, dry_run);
  if (!cluster_reports) return os::wrong_usage(cluster_reports.error());
  if (const auto checked = check_monitoring(settings.http); !checked) return os::wrong_usage(checked.error());
  return reactor.exit_code =
             guard_node(reactor.context,
                        {.files = files,
                         .configuration = *configuration,
                         .endpoint = *endpoint,
                         .api = *api,
                         .pod_sources = *std::move(pod_sources),
                         .admission = *std::move(admission),
                         .cluster_reports = *std::move(cluster_reports),
                         .dry_run = dry_run},
                        {.inherited = inherited,
                         .node = {.hierarchy = *hierarchy, .memory = *memory, .disk = disk, .readers = readers},
                         .first_reading = *first_reading});
}

}  // namespace evictd::app
