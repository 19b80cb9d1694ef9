#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "api/caller.hpp"
#include "api/event_writer.hpp"
#include "api/stream_request.hpp"
#include "events/event_log.hpp"
#include "events/status_source.hpp"
#include "events/turns.hpp"
#include "rpc/server/open_calls.hpp"

namespace evictd::api {

struct StreamLimits {
  std::chrono::milliseconds write_timeout{5000};  ///< an event may stay unread for that long
  std::size_t subscribers = 1024;                 ///< streams at the same time; one more gets RESOURCE_EXHAUSTED
  std::size_t of_administrators = 16;             ///< they have so many more, whoever else has taken all
};

class EventStreams;

/// A subscription: one coroutine on the reactor, which reads on in the log and hands the writer one event after the
/// other, until the end of what was asked for, or its peer leaves or does not take them. What waits for it is in the
/// log, bounded by EventLogLimits. The writer may outlive it.
///
/// Whatever costs more than a note of it (all that goes to gRPC, looking for the next event that passes the filter) is
/// done in a turn of its own; see events::Turns.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(EventStreams& streams, std::shared_ptr<EventWriter> writer, StreamPlan plan);

  /// Begins the coroutine. `refusal`: all that the subscriber will hear.
  void begin(std::optional<grpc::Status> refusal = {});
  /// Ends the coroutine at once, within this, and lets go of the writer: another part ends the call.
  void close();

  /// The write under way is over; not ok: the peer is gone.
  void written(bool ok);
  /// The call was cancelled, or its connection is gone.
  void peer_left();

 private:
  static boost::asio::awaitable<void> run(std::shared_ptr<EventStream> self);
  /// How the call ends; nothing where this was closed.
  boost::asio::awaitable<std::optional<grpc::Status>> tell();
  /// Goes on in the next turn that was asked for. False: this was closed.
  boost::asio::awaitable<bool> turn();
  void ask_for_turn();

  /// Why not, if so.
  [[nodiscard]] std::optional<grpc::Status> subscribe();
  [[nodiscard]] events::EventPtr next_message();
  [[nodiscard]] events::EventPtr make_snapshot() const;
  [[nodiscard]] events::EventPtr make_heartbeat() const;
  void send(events::EventPtr event);
  void watch_write();
  void watch_silence(std::chrono::steady_clock::time_point until);
  void end(const grpc::Status& status);

  EventStreams& streams_;  // not once closed
  std::shared_ptr<EventWriter> writer_;
  StreamPlan plan_;
  std::shared_ptr<events::Turns::Taker> taker_;
  std::move_only_function<void(bool)> go_on_;  // while the coroutine waits for a turn
  bool closed_ = false;
  bool admitted_ = false;
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
  /// The log must outlive this, and so must `status`, which has what a snapshot holds.
  EventStreams(events::EventLog& log, StreamLimits limits, events::StatusSource& status);

  ~EventStreams() { close(); }
  EventStreams(const EventStreams&) = delete;
  EventStreams& operator=(const EventStreams&) = delete;

  /// A subscriber called, who may. On the queue's thread.
  void open(const std::shared_ptr<EventWriter>& writer, const std::shared_ptr<rpc::OpenCalls>& calls, Role role);

  /// Closes all streams and takes no more; their calls are ended by OpenCalls.
  void close();

 private:
  friend class EventStream;
  void begin(const std::shared_ptr<EventWriter>& writer, StreamPlan plan, Role role);

  events::EventLog& log_;
  boost::asio::any_io_executor reactor_;
  StreamLimits limits_;
  events::StatusSource& status_;
  bool closed_ = false;
  std::unordered_set<std::shared_ptr<EventStream>> streams_;  // those that are refused, too, until their turn
  std::size_t admitted_ = 0;                                  // of them
};

}  // namespace evictd::api
