#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "app/configuration.hpp"
#include "async/deadline_thread.hpp"
#include "core/error.hpp"
#include "kube/client.hpp"
#include "kube/credentials.hpp"
#include "kube/report_options.hpp"
#include "kube/reporter.hpp"

namespace evictd::app {

/// What tells the API server of evictions and of the node's pressure, as `kubernetes` says.
class ClusterReports {
 public:
  /// Null if nothing is to be told, as in a dry run. Error: a kubeconfig or a service account that is not good.
  [[nodiscard]] static Result<std::unique_ptr<ClusterReports>> make(const boost::asio::any_io_executor& reactor,
                                                                    const Configuration& configuration, bool dry_run);
  ~ClusterReports();

  [[nodiscard]] kube::Reporter& reporter() { return reporter_; }

 private:
  ClusterReports(const boost::asio::any_io_executor& reactor, kube::Credentials credentials,
                 kube::ReportOptions options);

  async::DeadlineThread files_{"reading the credentials for reports to the API server"};
  kube::Client client_;
  kube::Reporter reporter_;
};

/// Whether they can be made, for those who only check a configuration.
[[nodiscard]] Result<void> check_cluster_reports(const Configuration& configuration);

}  // namespace evictd::app
