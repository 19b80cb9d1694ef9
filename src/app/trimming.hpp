#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <memory>

#include "agent/clock.hpp"
#include "agent/evictions.hpp"
#include "agent/node_reports.hpp"
#include "agent/recorder.hpp"
#include "agent/running_pods.hpp"
#include "agent/trimmer.hpp"
#include "agent/usage.hpp"
#include "api/pressure_socket.hpp"
#include "async/side_thread.hpp"
#include "config/agent_configuration.hpp"
#include "core/synchronizer.hpp"
#include "node/cgroup.hpp"
#include "wake/wakes.hpp"

namespace evictd::app {

/// What trims before anybody has to go, put together (eviction.trim): a thread, the trimmer, and the socket on which
/// programs listen. On the reactor.
class Trimming final : private agent::TrimmedNode {
 public:
  /// All of these must outlive this.
  struct Parts {
    const core::Synchronizer& policy;
    agent::Usage& usage;
    const agent::RunningPods& pods;
    const node::CgroupHierarchy& hierarchy;
    agent::Clock& clock;
    wake::Wakes& wakes;
    const agent::Evictions& evictions;
    agent::NodeReports& reports;
    agent::Recorder& recorder;
  };

  /// Null where it is off, and in a dry run. A socket that cannot be had is told of, and there is none then: no node
  /// is left without a guard for it.
  [[nodiscard]] static std::unique_ptr<Trimming> make(const boost::asio::any_io_executor& reactor,
                                                      const config::AgentConfiguration& settings, bool dry_run,
                                                      const Parts& parts);
  Trimming(const Trimming&) = delete;
  Trimming& operator=(const Trimming&) = delete;
  ~Trimming() = default;

  [[nodiscard]] agent::Trimmer& trimmer() { return trimmer_; }

 private:
  Trimming(const boost::asio::any_io_executor& reactor, const config::AgentConfiguration& settings, const Parts& parts);
  [[nodiscard]] bool acts() const override;
  [[nodiscard]] bool evicts() const override;
  [[nodiscard]] core::Observations look() override;
  std::size_t tell_programs() override;

  Parts parts_;
  async::SideThread worker_;
  std::unique_ptr<api::PressureSocket> socket_;  // null: nobody is told
  agent::Trimmer trimmer_;
};

}  // namespace evictd::app
