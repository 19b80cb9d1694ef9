#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <memory>

#include "config/agent_configuration.hpp"
#include "events/event_log.hpp"
#include "events/event_store.hpp"

namespace evictd::app {

/// The events, and where they are kept (stateDirectory). Where the directory cannot be used, which is warned of,
/// they are kept in memory only. On the reactor.
class EventHistory {
 public:
  /// `rescued`: what an earlier evictd left beside its history.
  EventHistory(const boost::asio::any_io_executor& reactor, const config::AgentConfiguration& settings,
               const events::RescuedEvents& rescued);
  EventHistory(const EventHistory&) = delete;
  EventHistory& operator=(const EventHistory&) = delete;

  [[nodiscard]] events::EventLog& log() { return log_; }

 private:
  std::unique_ptr<events::EventStore> store_;  // null: in memory only
  events::EventLog log_;
};

}  // namespace evictd::app
