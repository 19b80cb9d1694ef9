#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admission/chain.hpp"
#include "agent/decision_log.hpp"
#include "agent/latency.hpp"
#include "api/handlers.hpp"
#include "core/action.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/eviction_message.hpp"
#include "core/observation.hpp"
#include "core/pod.hpp"
#include "events/event_log.hpp"
#include "evict/eviction_record.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/progress.hpp"
#include "os/log.hpp"

namespace evictd::v1 {
class Audit;
}

namespace evictd::agent {

/// Tells the world what happened: each thing is one event of the API and one line of the log. The line is handed to the
/// log's thread (os/log.hpp) once the handler that reported is over, so that it delays no kill that was decided.
class Recorder final : public DecisionLog, public api::Auditor {
 public:
  explicit Recorder(events::EventLog& events) : events_{events} {}

  void crossed(const core::ReportCrossing& action, const core::Turn& turn) override;
  void conditions(const core::ReportConditions& action, const core::Turn& turn) override;
  void no_victim(const core::NoVictim& action, const core::Turn& turn) override;
  void rate_limited(const core::RateLimited& action, const core::Turn& turn) override;
  void recovered(const core::Recovered& action, const core::Turn& turn) override;
  void source_degraded(const std::string& source, const Error& error) override;
  void source_recovered(const std::string& source, const std::string& what) override;
  [[nodiscard]] evict::EvictionRecord intended(core::Eviction eviction, const core::Turn& turn, bool dry_run) override;
  void rehearse(const evict::EvictionRecord& record) override;
  /// `changes`: a line each; none where the change was refused or is held back, as the message says.
  void config_changed(std::vector<std::string> changes, const std::string& message);
  /// A client asked for a change by the API.
  void audit(const v1::Audit& audit) override;
  void admission_rejected(const core::Pod& pod, const admission::Decision& decision);
  void reclaimed(const core::ReclaimNode& action, const evict::ReclaimResult& result, const core::Observations& before,
                 const core::Observations& after, const core::Turn& turn) override;
  void progress(evict::EvictionRecord& record, const evict::Progress& progress) override;
  void explained(evict::EvictionRecord& record, const Evidence& evidence) override;
  void failed(const evict::EvictionRecord& record, const Error& error) override;
  void kernel_oom(const KernelKill& kill) override;
  void trimmed(const TrimReport& report) override;

  /// How long evictions took so far.
  [[nodiscard]] const Latencies& latencies() const { return latencies_; }

 private:
  void on(evict::EvictionRecord& record, const evict::ContainersKilled& killed);
  void on(evict::EvictionRecord& record, const evict::MemoryReleased& released);
  void on(evict::EvictionRecord& record, const evict::CallFailed& failed);
  void on(evict::EvictionRecord& record, const evict::CallDelayed& delayed);
  void on(evict::EvictionRecord& record, const evict::Braked& braked);
  void on(evict::EvictionRecord& record, const evict::HooksAsked& asked);
  static void on(evict::EvictionRecord&, const evict::PodGone&) {}  // CLEANUP_DONE tells of it
  void on(evict::EvictionRecord& record, const evict::CleanupEnded& ended);
  void measure(const evict::EvictionRecord& record, Phase phase, core::Instant reached);
  void tell_once(v1::Event event);
  std::uint64_t append(v1::Event event, os::LogLevel level);
  void source_state(const std::string& source, std::string_view state, const std::string& what);
  void log_later(const v1::Event& event, os::LogLevel level);
  void audit_later(const evict::EvictionRecord& record, std::string outcome);

  events::EventLog& events_;
  std::set<std::string, std::less<>> told_;  // by what no pod goes although one should, in this shortage
  Latencies latencies_;
};

}  // namespace evictd::agent
