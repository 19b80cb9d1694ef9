#include "commands/check_parts.hpp"

#include "commands/admission.hpp"
#include "commands/api_server.hpp"
#include "commands/cluster_reports.hpp"
#include "commands/monitoring.hpp"
#include "commands/pod_sources.hpp"

namespace evictd::commands {

Result<void> check_parts(const Configuration& configuration) {
  if (auto checked = check_pod_sources(configuration); !checked) return checked;
  if (auto checked = check_cluster_reports(configuration); !checked) return checked;
  if (auto checked = check_admission(configuration); !checked) return checked;
  if (const auto checked = api_server_options(configuration.agent); !checked) return std::unexpected(checked.error());
  return check_monitoring(configuration.agent.http);
}

}  // namespace evictd::commands
