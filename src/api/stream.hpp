#pragma once
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "api/event_log.hpp"
#include "api/event_writer.hpp"
#include "api/open_calls.hpp"

namespace evictd::api {

struct StreamLimits {
  std::chrono::milliseconds write_timeout{5000};  ///< an event may stay unread for that long
  std::size_t subscribers = 1024;                 ///< streams at the same time; one more gets RESOURCE_EXHAUSTED
};

class EventStreams;

/// The reactor's side of a subscription: hands the writer one event after the other, and cuts off a peer that does not
/// take them. EventStreams owns it; the writer may outlive it.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(EventStreams& streams, std::shared_ptr<EventWriter> writer);

  void start(const v1::StreamEventsRequest& request);
  /// The write under way is over; not ok: the peer is gone.
  void written(bool ok);
  /// Unsubscribes and ends the call. The stream is gone afterwards, once nobody up the stack holds it.
  void end(const grpc::Status& status);

 private:
  void send_next();
  void watch_write();

  EventStreams& streams_;
  std::shared_ptr<EventWriter> writer_;
  std::unique_ptr<Subscription> subscription_;
  std::uint64_t end_after_ = 0;  // the last number to send
  std::uint64_t sent_ = 0;       // the last number sent; a GAP counts as the last one it names
  bool writing_ = false;
  boost::asio::steady_timer write_timer_;
};

/// The streams that are open. On the reactor, but for `open`.
class EventStreams : public std::enable_shared_from_this<EventStreams> {
 public:
  /// The log must outlive this. `warn` is given one line for each subscriber that is cut off; it may be empty.
  EventStreams(EventLog& log, StreamLimits limits, std::function<void(const std::string&)> warn);

  /// A subscriber called. On gRPC's threads; what it returns belongs to gRPC.
  [[nodiscard]] grpc::ServerWriteReactor<v1::Event>* open(grpc::CallbackServerContext& context,
                                                          const std::shared_ptr<OpenCalls>& calls,
                                                          const v1::StreamEventsRequest& request);

  /// Drops all streams and takes no more; their calls are ended by OpenCalls.
  void close();

 private:
  friend class EventStream;
  void start(const std::shared_ptr<EventWriter>& writer, const v1::StreamEventsRequest& request);

  EventLog& log_;
  boost::asio::any_io_executor reactor_;
  StreamLimits limits_;
  std::function<void(const std::string&)> warn_;
  bool closed_ = false;
  std::unordered_set<std::shared_ptr<EventStream>> streams_;
};

}  // namespace evictd::api
