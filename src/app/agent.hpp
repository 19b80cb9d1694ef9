#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "api/server.hpp"
#include "app/admission.hpp"
#include "app/cluster_reports.hpp"
#include "app/configuration.hpp"
#include "app/pod_sources.hpp"
#include "app/sources.hpp"
#include "host/descriptor_store.hpp"
#include "node/node_memory.hpp"

namespace evictd::app {

/// What the configuration asks for, checked before anything of the node is touched.
struct Checked {
  const ConfigurationFiles& files;
  const Configuration& configuration;
  const std::string& endpoint;  ///< as parse_endpoint() gives it
  const api::ServerOptions& api;
  std::unique_ptr<PodSources> pod_sources;
  PreparedAdmission admission;
  std::unique_ptr<ClusterReports> cluster_reports;  ///< null: no API server is told anything
  bool dry_run = false;
};

/// What there is of the host.
struct Host {
  host::InheritedDescriptors& inherited;
  Measured node;
  const node::NodeMemoryReading& first_reading;
};

/// From the signal to end on: what ends orderly, with a disk that hangs, takes some 10 s at most: 5 for the events'
/// disk, and 0.5 for each thread that is held up. The unit's TimeoutStopSec is 15 s.
inline constexpr std::chrono::seconds longest_end{12};

/// evictd at work, until SIGINT or SIGTERM, or until the node's places are found elsewhere than they were taken to be
/// (PlaceWatch): builds its parts in the order in which they need one another, connects them to what wakes them and to
/// their sockets, and runs. An error, be it an address that cannot be had or what a part
/// throws on the reactor, is logged before anything is taken down. Returns the exit code (os/exit_code.hpp).
[[nodiscard]] int guard_node(boost::asio::io_context& reactor, Checked checked, const Host& host);

}  // namespace evictd::app
