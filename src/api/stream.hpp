#pragma once
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "api/event_writer.hpp"
#include "api/open_calls.hpp"
#include "api/stream_request.hpp"
#include "events/event_log.hpp"
#include "events/turns.hpp"

namespace evictd::api {

struct StreamLimits {
  std::chrono::milliseconds write_timeout{5000};  ///< an event may stay unread for that long
  std::size_t subscribers = 1024;                 ///< streams at the same time; one more gets RESOURCE_EXHAUSTED
};

class EventStreams;

/// The reactor's side of a subscription: hands the writer one event after the other, and cuts off a peer that does not
/// take them. EventStreams owns it; the writer may outlive it.
///
/// Whatever costs more than a note of it (all that goes to gRPC, looking for the next event that passes the filter) is
/// done in a turn of its own; see Turns.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(EventStreams& streams, std::shared_ptr<EventWriter> writer, StreamPlan plan);

  /// Asks for its first turn. `refusal`: all that the subscriber will hear.
  void begin(std::optional<grpc::Status> refusal = {});
  /// The write under way is over; not ok: the peer is gone.
  void written(bool ok);
  /// The call was cancelled, or its connection is gone.
  void peer_left();

 private:
  void take_turn();
  void start();
  [[nodiscard]] events::EventPtr next_message();
  [[nodiscard]] events::EventPtr make_snapshot() const;
  [[nodiscard]] events::EventPtr make_heartbeat() const;
  void send(events::EventPtr event);
  void watch_write();
  void watch_silence(std::chrono::steady_clock::time_point until);
  /// Unsubscribes and ends the call. The stream is gone afterwards, once nobody up the stack holds it.
  void end(const grpc::Status& status);

  EventStreams& streams_;
  std::shared_ptr<EventWriter> writer_;
  StreamPlan plan_;
  std::shared_ptr<events::Turns::Taker> taker_;
  std::unique_ptr<events::Subscription> subscription_;
  std::optional<grpc::Status> last_words_;  // to end with at the next turn
  events::EventPtr snapshot_;               // to send before anything else
  std::uint64_t end_after_ = 0;             // the last number to look at
  bool writing_ = false;
  std::uint64_t writing_sequence_ = 0;
  std::chrono::steady_clock::time_point last_message_{};  // when one was begun
  bool heartbeat_due_ = false;
  bool write_watched_ = false;
  boost::asio::steady_timer write_timer_;
  boost::asio::steady_timer heartbeat_timer_;
};

/// The streams that are open. On the reactor, but for `open`.
class EventStreams : public std::enable_shared_from_this<EventStreams> {
 public:
  using Status = std::function<v1::NodeStatus()>;

  /// The log must outlive this. `status`: what a snapshot holds, asked on the reactor. `warn` is given one line for
  /// each subscriber that is cut off; it may be empty.
  EventStreams(events::EventLog& log, StreamLimits limits, Status status, std::function<void(const std::string&)> warn);

  /// A subscriber called, who may. On the queue's thread.
  void open(const std::shared_ptr<EventWriter>& writer, const std::shared_ptr<OpenCalls>& calls);

  /// Drops all streams and takes no more; their calls are ended by OpenCalls.
  void close();

 private:
  friend class EventStream;
  void begin(const std::shared_ptr<EventWriter>& writer, StreamPlan plan);

  events::EventLog& log_;
  boost::asio::any_io_executor reactor_;
  StreamLimits limits_;
  Status status_;
  std::function<void(const std::string&)> warn_;
  bool closed_ = false;
  std::unordered_set<std::shared_ptr<EventStream>> streams_;
};

}  // namespace evictd::api
