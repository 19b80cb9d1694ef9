#include "commands/run.hpp"

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "commands/api_server.hpp"
#include "commands/configuration.hpp"
#include "commands/node_guard.hpp"
#include "config/agent_configuration.hpp"
#include "core/error.hpp"
#include "cri/endpoint.hpp"
#include "host/descriptor_store.hpp"
#include "host/log.hpp"
#include "host/node_lock.hpp"
#include "host/self_protection.hpp"
#include "node/cgroup.hpp"
#include "node/node_disk.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"
#include "wake/memory_fence.hpp"

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
