#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "agent/evictions.hpp"
#include "agent/node_shutdown.hpp"
#include "agent/pod_tracker.hpp"
#include "app/configuration.hpp"
#include "host/inhibitor_lock.hpp"
#include "pods/catalog.hpp"
#include "pods/cri_pods.hpp"

namespace evictd::events {
class EventLog;
}

namespace evictd::kube {
class Reporter;
}

namespace evictd::app {

/// What the shutdown is made of; all must outlive it.
struct ShutdownParts {
  agent::Evictions& evictions;
  pods::CriPods& pods;
  agent::PodTracker& tracker;
  pods::Catalog& catalog;
  events::EventLog& events;
  kube::Reporter* cluster = nullptr;  ///< null: the cluster is told nothing
};

/// Null where the configuration has no shutdownGracePeriod, and in a dry run: then a lock that was inherited goes, and
/// the cluster is told that the node does not shut down (which it may still say of an earlier time).
[[nodiscard]] std::unique_ptr<agent::NodeShutdown> make_node_shutdown(const boost::asio::any_io_executor& reactor,
                                                                      const Configuration& configuration, bool dry_run,
                                                                      host::InhibitorLock inherited,
                                                                      const ShutdownParts& parts);

/// On the reactor, to which this returns at once.
void begin(const boost::asio::any_io_executor& reactor, agent::NodeShutdown& shutdown);

}  // namespace evictd::app
