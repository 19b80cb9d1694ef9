#include "app/check_parts.hpp"

#include "app/admission.hpp"
#include "app/api_server.hpp"
#include "app/cluster_reports.hpp"
#include "app/monitoring.hpp"
#include "app/pod_sources.hpp"

namespace evictd::app {

Result<void> check_parts(const Configuration& configuration) {
  if (auto checked = check_pod_sources(configuration); !checked) return checked;
  if (auto checked = check_cluster_reports(configuration); !checked) return checked;
  if (auto checked = check_admission(configuration); !checked) return checked;
  if (const auto checked = api_server_options(configuration.agent); !checked) return std::unexpected(checked.error());
  return check_monitoring(configuration.agent.http);
}

}  // namespace evictd::app
