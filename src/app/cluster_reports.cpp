#include "app/cluster_reports.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "app/pod_sources.hpp"
#include "async/spawn.hpp"
#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "host/node_name.hpp"
#include "kube/credentials.hpp"
#include "kube/message.hpp"
#include "kube/report_options.hpp"
#include "kube/retry_delay.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;

namespace evictd::app {
namespace {

/// An API server answers in milliseconds, or after up to a minute where it waits for its etcd; whoever asks again
/// sooner adds to its load.
constexpr std::chrono::seconds deadline{30};

kube::ReportMode report_mode(config::PodReport report) {
  switch (report) {
    case config::PodReport::Status: return kube::ReportMode::Status;
    case config::PodReport::Delete: return kube::ReportMode::Delete;
    case config::PodReport::None: return kube::ReportMode::None;
  }
  return kube::ReportMode::None;
}

kube::NodeConditionMode node_condition_mode(config::NodeReport report) {
  switch (report) {
    case config::NodeReport::Conditions: return kube::NodeConditionMode::Conditions;
    case config::NodeReport::Taints: return kube::NodeConditionMode::Taints;
    case config::NodeReport::None: return kube::NodeConditionMode::None;
  }
  return kube::NodeConditionMode::None;
}

/// The key that asks for reports; empty: none does.
std::string_view asked_by(const config::KubernetesSettings& settings) {
  if (settings.report != config::PodReport::None) return "kubernetes.report";
  return settings.node_conditions != config::NodeReport::None ? "kubernetes.nodeConditions" : "";
}

/// Nodes that start together report at different times.
core::Duration share_of(core::Duration spread) {
  return core::Duration{static_cast<core::Duration::rep>(kube::any_random()() * static_cast<double>(spread.count()))};
}

}  // namespace

ClusterReports::ClusterReports(const asio::any_io_executor& reactor, kube::Credentials credentials,
                               kube::ReportOptions options)
    : client_{reactor, files_.get_executor(), std::move(credentials)},
      reporter_{reactor, std::move(options),
                [this](kube::Request request) { return client_.send(std::move(request), deadline); },
                [](os::LogLevel level, const std::string& line) { os::log(level, line); }} {}

ClusterReports::~ClusterReports() { files_.finish(); }

Result<std::unique_ptr<ClusterReports>> ClusterReports::make(const asio::any_io_executor& reactor,
                                                             const Configuration& configuration, bool dry_run) {
  const auto& settings = configuration.agent.kubernetes;
  kube::ReportOptions options{.node = host::node_name(settings.node_name),
                              .report = report_mode(settings.report),
                              .node_conditions = node_condition_mode(settings.node_conditions),
                              .start_delay = share_of(settings.start_spread)};
  if (asked_by(settings).empty() || dry_run) return nullptr;
  auto credentials = api_server_credentials(settings);
  if (!credentials) return fail(credentials.error(), asked_by(settings));
  std::unique_ptr<ClusterReports> reports{new ClusterReports(reactor, *std::move(credentials), std::move(options))};
  async::spawn_contained(reactor, reports->reporter_.run(), [](const std::string& reason) {
    os::log_error("the API server is told nothing any more until evictd restarts: {}", reason);
  });
  return reports;
}

Result<void> check_cluster_reports(const Configuration& configuration) {
  const auto& settings = configuration.agent.kubernetes;
  if (asked_by(settings).empty()) return {};
  const auto credentials = api_server_credentials(settings);
  if (!credentials) return fail(credentials.error(), asked_by(settings));
  return {};
}

}  // namespace evictd::app
