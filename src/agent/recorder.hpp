#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "admission/chain.hpp"
#include "agent/latency.hpp"
#include "api/event_log.hpp"
#include "core/action.hpp"
#include "core/duration.hpp"
#include "evict/node_reclaim.hpp"
#include "evict/progress.hpp"
#include "host/log.hpp"
#include "wake/wakes.hpp"

namespace evictd::v1 {
class Audit;
}

namespace evictd::agent {

/// One turn of the loop: what woke it, and how long each stage took since.
struct Turn {
  wake::Wake wake;
  std::map<std::string, core::Duration, std::less<>> stages{};

  /// Notes that the stage is reached now.
  void mark(std::string_view stage);
};

/// An eviction under way, as its later events refer to it.
struct EvictionRecord {
  std::uint64_t id = 0;  ///< the number of its EVICTION_INTENDED event
  core::PodPtr pod;
  core::EvictionCause cause;
  Turn turn;
  std::optional<core::Acted> acted{};
  std::int64_t expected_release = 0;  ///< in the signal's unit
  core::Duration grace_period{};      ///< zero: killed at once
  bool killed = false;                ///< its containers do not run any more
  core::EvictionMessage message{};    ///< as the pod's status says it
  std::string ranking{};              ///< of all that were looked at, one line for the journal
};

/// Tells the world what happened: each thing is one event of the API and one line of the log. Events first: a log that
/// blocks delays nobody.
class Recorder {
 public:
  explicit Recorder(api::EventLog& events) : events_{events} {}

  void crossed(const core::ReportCrossing& action, const Turn& turn);
  void conditions(const core::ReportConditions& action, const Turn& turn);
  void no_victim(const core::NoVictim& action, const Turn& turn);
  void rate_limited(const core::RateLimited& action, const Turn& turn);
  void recovered(const core::Recovered& action, const Turn& turn);
  void source_degraded(const std::string& source, const Error& error);
  /// Before the kill. The record's id ties the eviction's later events to this one.
  [[nodiscard]] EvictionRecord intended(const core::Evict& action, const core::EvictionMessage& message,
                                        const Turn& turn, bool dry_run);
  /// `changes`: a line each; none where the change was refused or is held back, as the message says.
  void config_changed(std::vector<std::string> changes, const std::string& message);
  /// Somebody asked for a change by the API.
  void audit(const v1::Audit& audit);
  void admission_rejected(const core::Pod& pod, const admission::Decision& decision);
  void reclaimed(const core::ReclaimNode& action, const evict::ReclaimResult& result, const core::Observations& before,
                 const core::Observations& after, const Turn& turn);
  void progress(EvictionRecord& record, const evict::Progress& progress);
  /// The pod was gone before it could be stopped, or the like.
  void failed(const EvictionRecord& record, const Error& error);

  /// How long evictions took so far.
  [[nodiscard]] const Latencies& latencies() const { return latencies_; }

 private:
  void on(EvictionRecord& record, const evict::ContainersKilled& killed);
  void on(EvictionRecord& record, const evict::MemoryReleased& released);
  void on(EvictionRecord& record, const evict::CallFailed& failed);
  void on(EvictionRecord& record, const evict::CleanupEnded& ended);
  void measure(const EvictionRecord& record, Stage stage, core::Instant reached);
  std::uint64_t append(v1::Event event, host::LogLevel level);
  void log_later(const v1::Event& event, host::LogLevel level);
  void audit_later(const EvictionRecord& record, std::string outcome);

  api::EventLog& events_;
  std::string last_no_victim_;
  Latencies latencies_;
};

}  // namespace evictd::agent
