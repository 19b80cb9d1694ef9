#include "commands/node_shutdown.hpp"

#include <evictd.pb.h>

#include <functional>
#include <string>
#include <utility>

#include "config/shutdown_groups.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "events/event_log.hpp"
#include "host/inhibitor_lock.hpp"
#include "host/logind.hpp"
#include "os/log.hpp"
#include "pods/own_pod.hpp"

namespace asio = boost::asio;

namespace evictd::commands {
namespace {

/// Without the pod that evictd runs in: it must see the others out. The machine's shutdown ends it.
asio::awaitable<Result<core::PodListPtr>> list_pods(ShutdownParts parts, std::string own_uid) {
  const auto refreshed = co_await parts.pods.refresh();
  if (!refreshed) co_return std::unexpected(refreshed.error());
  auto pods = std::make_shared<core::PodList>(*parts.catalog.complete(parts.pods.pods()));
  std::erase_if(*pods, [&](const core::PodPtr& pod) { return pod->uid == own_uid; });
  co_return core::PodListPtr{std::move(pods)};
}

/// As any other pod that has to go, with a reason of its own.
void end_pod(agent::Evictions& evictions, const core::PodPtr& pod, core::Duration grace_period,
             std::function<void()> done) {
  evictions.displace(pod, {core::Displacement::NodeShutdown, std::string(agent::shutdown_message)}, grace_period,
                     [done = std::move(done)](bool) { done(); });
}

void tell(events::EventLog& events, const v1::NodeShutdown& detail, const std::string& message) {
  v1::Event event;
  event.set_kind(v1::Event::NODE_SHUTDOWN);
  *event.mutable_node_shutdown() = detail;
  event.set_message(message);
  events.append(std::move(event));
  os::log_info("{}", message);
}

}  // namespace

std::unique_ptr<agent::NodeShutdown> make_node_shutdown(const asio::any_io_executor& reactor,
                                                        const Configuration& configuration, bool dry_run,
                                                        host::InhibitorLock inherited, const ShutdownParts& parts) {
  auto groups = config::shutdown_groups(configuration.kubelet);
  if (!groups || groups->empty() || dry_run) {
    inherited.release();
    return nullptr;
  }
  const auto& settings = configuration.agent.shutdown;
  return std::make_unique<agent::NodeShutdown>(
      reactor, *std::move(groups),
      host::LogindOptions{.raise_inhibit_delay = settings.raise_inhibit_delay, .drop_ins = settings.logind_drop_ins},
      std::move(inherited), config::runtime_files(configuration.agent).shutdown,
      agent::ShutdownHooks{
          .pods = [parts, own_uid = pods::own_pod_uid()] { return list_pods(parts, own_uid); },
          .end = [&evictions = parts.evictions](
                     const core::PodPtr& pod, core::Duration grace_period,
                     std::function<void()> done) { end_pod(evictions, pod, grace_period, std::move(done)); },
          .tell = [&events = parts.events](const v1::NodeShutdown& detail,
                                           const std::string& message) { tell(events, detail, message); }});
}

}  // namespace evictd::commands
