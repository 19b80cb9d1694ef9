#include "app/answers.hpp"

namespace evictd::app {

v1::NodeStatus Answers::status() {
  auto status = agent::describe_status(parts_.status, os::now());
  status.set_dry_run(parts_.dry_run);
  status.set_version(EVICTD_VERSION);
  *status.mutable_started() = started_;
  if (parts_.shutdown != nullptr) *status.mutable_shutdown() = parts_.shutdown->status();
  *status.mutable_reactor() = agent::describe_reactor(parts_.turns.lateness());
  parts_.thresholds.add_to(status);
  return status;
}

api::Answer<v1::RankPodsResponse> Answers::rank_pods(const v1::RankPodsRequest& request) {
  return agent::rank_pods(parts_.ranking, request);
}

}  // namespace evictd::app
