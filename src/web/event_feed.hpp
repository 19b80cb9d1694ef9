#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <memory>

#include "core/duration.hpp"
#include "web/server.hpp"

namespace evictd::events {
class EventLog;
class StatusSource;
}  // namespace evictd::events

namespace evictd::web {

struct FeedLimits {
  std::size_t watchers = 16;  ///< pages that are open at the same time
  /// Messages that may wait for a page. One that is further behind is cut off: its browser comes back by itself, and
  /// begins anew with a snapshot.
  std::size_t queue = 256;
  std::size_t history = 200;                          ///< events in a snapshot: the last ones
  core::Duration interval = std::chrono::seconds(1);  ///< between two samples of the status
};

/// What the page is fed with, as server-sent events whose data is proto3 JSON:
///   snapshot  {"status": NodeStatus, "events": [Event…]}, first
///   event     Event, each one after the snapshot, and perhaps the last ones of it again: their sequence tells; one
///             that was missed is named by a GAP
///   status    NodeStatus, every `interval`; without the latencies' buckets
/// A client that leaves at once has its snapshot written all the same, so no more than twice `watchers` of them are
/// under way. Nothing is done, or asked of the agent, while no client watches. JSON is written by `workers`, one text
/// after the other.
///
/// On the reactor. The log and whatever gives the status must outlive this.
class EventFeed {
 public:
  EventFeed(boost::asio::any_io_executor reactor, boost::asio::any_io_executor workers, events::EventLog& log,
            events::StatusSource& status, OnClientFailure on_client_failure, FeedLimits limits = {});
  /// Watchers that are left are told that it is over.
  ~EventFeed();
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;

  /// Null: there are `watchers` already, or too many have just left.
  [[nodiscard]] std::unique_ptr<Messages> watch();
  [[nodiscard]] std::size_t watchers() const;

 private:
  class Hub;
  class Watcher;
  std::shared_ptr<Hub> hub_;  // shared with watchers and with work under way
};

}  // namespace evictd::web
