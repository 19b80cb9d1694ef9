#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/recorder.hpp"
#include "core/synchronizer.hpp"
#include "cri/client.hpp"
#include "evict/evictor.hpp"
#include "host/systemd.hpp"
#include "node/node_memory.hpp"
#include "node/pod_cgroups.hpp"
#include "pods/cri_pods.hpp"
#include "wake/source.hpp"
#include "wake/timer.hpp"
#include "wake/wakes.hpp"

namespace evictd::v1 {
class NodeStatus;
}

namespace evictd::agent {

struct AgentOptions {
  core::Duration refresh_interval = std::chrono::seconds(10);  ///< how often pods are listed without a reason
  core::Duration cleanup_timeout = std::chrono::seconds(30);
  bool dry_run = false;  ///< decide and report, touch nothing
};

/// The loop: wake, observe, step, act. It owns the state machine and the evictions under way; all else it is given. On
/// the reactor.
class Agent {
 public:
  struct Parts {
    node::NodeMemory& memory;
    node::PodCgroups& cgroups;
    pods::CriPods& pods;
    cri::Client& runtime;
    wake::Wakes& wakes;
    wake::Deadline& deadline;
    std::vector<std::unique_ptr<wake::Source>>& sources;
    evict::Evictor& evictor;
    Recorder& recorder;
    host::ServiceManager& service;
  };

  Agent(boost::asio::any_io_executor reactor, core::EvictionPolicy policy, AgentOptions options, Parts parts);

  /// Runs passes until stop(), then waits for the evictions under way: what was begun is carried to the kill, for at
  /// most a few seconds.
  [[nodiscard]] boost::asio::awaitable<void> run();
  void stop();

  /// Pods came or went: lists them now and, since a pod's containers follow its cgroup, a little later again.
  void pods_changed();

  /// What GetNodeStatus tells of the agent; the composition root adds what only it knows.
  [[nodiscard]] v1::NodeStatus status() const;

 private:
  void pass(const wake::Wake& wake);
  void perform(const core::Actions& actions, Turn& turn);
  void tell(const core::Event& event, Turn& turn);
  void evict(const core::Evict& action, Turn& turn);
  void pretend(const core::Evict& action, Turn& turn);
  void answer(const core::ReadPodUsage& request, Turn& turn);
  void arm();
  [[nodiscard]] std::vector<core::Releasing> releasing() const;
  void on_progress(const std::string& uid, std::uint64_t id, const evict::Progress& progress);
  void conditions_changed(const core::ReportConditions& report, const Turn& turn);
  void report_service_status();

  boost::asio::awaitable<void> watch_pods();
  void pods_refreshed(const Result<void>& result);
  void keep_victims(std::vector<node::PodCgroup>& cgroups) const;
  boost::asio::awaitable<void> wait_for_evictions();

  boost::asio::any_io_executor reactor_;
  AgentOptions options_;
  Parts parts_;
  core::Synchronizer synchronizer_;
  std::vector<core::Level> levels_;
  node::NodeMemoryReading reading_;
  std::map<std::string, EvictionRecord, std::less<>> evictions_;  // by pod uid
  boost::asio::steady_timer refresh_timer_;
  int refreshes_due_ = 0;  // how many quick refreshes are left until things have settled
  std::string pods_error_;
  std::string node_error_;
  bool ready_ = false;
  bool stopping_ = false;
  std::uint64_t passes_ = 0;
  std::uint64_t evicted_ = 0;
  core::NodeConditions conditions_;
  std::map<core::NodeCondition, core::Instant> conditions_since_;  // when each last changed
  std::string runtime_name_;                                       // of the last connection: "containerd 1.6.20"
};

}  // namespace evictd::agent
