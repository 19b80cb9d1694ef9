#include "commands/run.hpp"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "async/deadline_thread.hpp"
#include "async/spawn.hpp"
#include "commands/api_server.hpp"
#include "commands/configuration.hpp"
#include "commands/node_guard.hpp"
#include "commands/runtime_offers.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "cri/endpoint.hpp"
#include "host/descriptor_store.hpp"
#include "host/end_deadline.hpp"
#include "host/node_lock.hpp"
#include "host/self_protection.hpp"
#include "node/cgroup.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"
#include "os/log.hpp"
#include "wake/memory_fence.hpp"

namespace asio = boost::asio;

namespace evictd::commands {
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

asio::awaitable<void> read(node::NodeDisk& disk, std::shared_ptr<bool> done) {
  co_await disk.read_now();
  *done = true;
}

/// So that what was kept of a disk's pressure meets a number in the first pass. A disk that does not answer delays the
/// start by no more than this.
void read_disks(asio::io_context& reactor, node::NodeDisk& disk) {
  constexpr auto patience = std::chrono::seconds{1};
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
    os::log_warning("it ends although something hangs: {}; does a disk or a name service not answer?",
                    fmt::join(held_up, "; "));
    host::end_now(exit_code);
  }

  asio::io_context context{1};
  int exit_code = 0;
};

int run(const ConfigurationFiles& files, bool is_dry_run) {
  host::InheritedDescriptors inherited;  // before there are threads
  os::log_in_background();
  const auto configuration = load_configuration(files, ask_cgroup_driver);
  if (!configuration) return wrong_usage(configuration.error());
  const auto& settings = configuration->agent;
  os::set_log_level(log_level(settings.log.level));
  if (configuration->watch_only)
    os::log_warning(
        "nothing is evicted, as with --dry-run: by which thresholds the node's kubelet acts cannot be told: "
        "{}; name its configuration with --kubelet-config",
        *configuration->watch_only);
  const bool dry_run = is_dry_run || configuration->watch_only;
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
  const auto lock = take_node_lock(config::runtime_files(settings).lock);
  if (!lock) return failed(lock.error());
  if (const auto refusal = host::protect_self()) os::log_warning("{}", *refusal);

  Reactor reactor;
  node::NodeDisk disk{reactor.context.get_executor(), settings.node};
  read_disks(reactor.context, disk);
  auto parts = ConfiguredParts::make(reactor.context.get_executor(), *configuration, dry_run);
  if (!parts) return wrong_usage(parts.error());
  if (!dry_run) wake::lift_old_fence(*hierarchy, memory->pods_cgroup());
  NodeGuard guard{{.reactor = reactor.context,
                   .files = files,
                   .configuration = *configuration,
                   .endpoint = *endpoint,
                   .api = *api_options,
                   .node = {.hierarchy = *hierarchy, .memory = *memory, .disk = disk, .readers = {&disk, &*pids}},
                   .first_reading = *first_reading,
                   .inherited = inherited,
                   .dry_run = dry_run},
                  *std::move(parts)};
  if (const auto begun = guard.begin(); !begun) return failed(begun.error());
  try {
    guard.run();
  } catch (const std::exception& error) {
    // systemd starts the next evictd only once this one is gone, and what failed may hold up its end.
    host::end_after(std::chrono::seconds{5});
    return reactor.exit_code = failed({error.what()});
  }
  return 0;
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .description = "Guard this node until SIGTERM",
          .declare =
              [](CommandLine& line) {
                struct Options {
                  ConfigurationFiles files;
                  bool dry_run = false;
                };
                const auto options = std::make_shared<Options>();
                add_file_options(line, options->files);
                line.flag("--dry-run", "decide and report, touch no pod", options->dry_run);
                return [options] { return run(options->files, options->dry_run); };
              },
          .by_default = true};
}

}  // namespace evictd::commands
