#pragma once
#include <evictd.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "agent/describe.hpp"
#include "agent/node_shutdown.hpp"
#include "agent/pod_ranking.hpp"
#include "agent/status.hpp"
#include "api/handlers.hpp"
#include "app/live_thresholds.hpp"
#include "events/status_source.hpp"
#include "os/now.hpp"
#include "wake/turn_watch.hpp"

namespace evictd::app {

/// Answers what the API, the metrics and the page ask of the whole node: how it is, and who would go. On the reactor.
class Answers final : public events::StatusSource, public api::RankHandler {
 public:
  /// All of these must outlive this.
  struct Parts {
    agent::StatusParts status;
    agent::Rankable ranking;
    const LiveThresholds& thresholds;
    const wake::TurnWatch& turns;
    const agent::NodeShutdown* shutdown;  ///< null: evictd does not wait for a shutdown of the node
    bool dry_run = false;
  };

  explicit Answers(const Parts& parts) : parts_{parts} {}

  [[nodiscard]] v1::NodeStatus status() override;
  [[nodiscard]] api::Answer<v1::RankPodsResponse> rank_pods(const v1::RankPodsRequest& request) override;

 private:
  Parts parts_;
  google::protobuf::Timestamp started_ = agent::wall_time(os::now());
};

}  // namespace evictd::app
