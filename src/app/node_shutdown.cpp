#include "app/node_shutdown.hpp"

#include <evictd.pb.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "async/spawn.hpp"
#include "config/shutdown_groups.hpp"
#include "core/displacement.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/pod.hpp"
#include "events/event_log.hpp"
#include "host/inhibitor_lock.hpp"
#include "host/logind.hpp"
#include "kube/pod_objects.hpp"
#include "kube/reporter.hpp"
#include "os/log.hpp"
#include "os/now.hpp"
#include "pods/own_pod.hpp"

namespace asio = boost::asio;

namespace evictd::app {
namespace {

class Hooks final : public agent::ShutdownHooks {
 public:
  explicit Hooks(const ShutdownParts& parts) : parts_{parts} {}

  /// Without the pod that evictd runs in: it must see the others out. The machine's shutdown ends it. The evictions are
  /// to know these pods, too: after a start this list may be the first.
  asio::awaitable<Result<core::PodListPtr>> list_pods() override {
    const auto asked = os::now();
    const auto refreshed = co_await parts_.pods.refresh();
    parts_.tracker.take_list(refreshed, asked);
    if (!refreshed) co_return std::unexpected(refreshed.error());
    auto pods = std::make_shared<core::PodList>(*parts_.catalog.complete(parts_.pods.pods()));
    std::erase_if(*pods, [&](const core::PodPtr& pod) { return pod->uid == own_uid_; });
    co_return core::PodListPtr{std::move(pods)};
  }

  /// As any other pod that has to go, with a reason of its own.
  void end(const core::PodPtr& pod, core::Duration grace_period, std::move_only_function<void()> done) override {
    parts_.evictions.displace(pod, {core::Displacement::NodeShutdown, std::string(agent::shutdown_message)},
                              grace_period, [done = std::move(done)](bool) mutable { done(); });
  }

  void tell(const v1::NodeShutdown& detail, const std::string& message) override {
    v1::Event event;
    event.set_kind(v1::Event::NODE_SHUTDOWN);
    *event.mutable_node_shutdown() = detail;
    event.set_message(message);
    parts_.events.append(std::move(event));
    os::log_info("{}", message);
  }

  void tell_cluster(const kube::NodeShutdown& shutdown) override {
    if (parts_.cluster != nullptr) parts_.cluster->node_shutdown(shutdown);
  }

 private:
  ShutdownParts parts_;
  std::string own_uid_ = pods::own_pod_uid();
};

}  // namespace

std::unique_ptr<agent::NodeShutdown> make_node_shutdown(const asio::any_io_executor& reactor,
                                                        const Configuration& configuration, bool dry_run,
                                                        host::InhibitorLock inherited, const ShutdownParts& parts) {
  auto groups = config::shutdown_groups(configuration.kubelet);
  if (!groups || groups->empty() || dry_run) {
    inherited.release();
    if (parts.cluster != nullptr) parts.cluster->node_shutdown({});
    return nullptr;
  }
  const auto& settings = configuration.agent.shutdown;
  return std::make_unique<agent::NodeShutdown>(
      reactor, *std::move(groups),
      host::LogindOptions{.raise_inhibit_delay = settings.raise_inhibit_delay, .drop_ins = settings.logind_drop_ins},
      std::move(inherited), config::runtime_files(configuration.agent).shutdown, std::make_unique<Hooks>(parts));
}

void begin(const asio::any_io_executor& reactor, agent::NodeShutdown& shutdown) {
  async::spawn_contained(reactor, shutdown.run(), [](const std::string& reason) {
    os::log_error("pods are not ended before the machine shuts down until evictd restarts: {}", reason);
  });
}

}  // namespace evictd::app
