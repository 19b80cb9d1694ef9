#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "events/event_log.hpp"
#include "evictd.grpc.pb.h"
#include "rpc/server/completion.hpp"
#include "rpc/server/open_calls.hpp"

namespace evictd::api {

class EventStream;

/// gRPC's side of a subscription: one write at a time, the message held until gRPC is done with it, Finish exactly once
/// and never beside a write.
///
/// Its own rules hold without the reactor, so a server can end its streams while the reactor stands still. Everything
/// else that the queue's thread hears it posts to the EventStream. It owns itself until gRPC has told all that it was
/// asked for; OpenCalls has a share from begin() on.
class EventWriter final : public rpc::OpenCall, public std::enable_shared_from_this<EventWriter> {
 public:
  using Service = v1::EvictionService::AsyncService;
  /// Given each call on the queue's thread: it either begins it or ends it.
  using Arrived = std::function<void(const std::shared_ptr<EventWriter>&)>;

  /// Takes subscriptions until the server shuts down. `service` and `queue` must outlive the server.
  static void listen(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived);

  /// By `listen` alone.
  EventWriter(Service& service, grpc::ServerCompletionQueue& queue, std::shared_ptr<const Arrived> arrived);

  [[nodiscard]] const grpc::ServerContext& context() const { return context_; }
  /// What is asked for, whatever its size: it is not kept. Once, on the queue's thread.
  [[nodiscard]] v1::StreamEventsRequest take_request() {
    v1::StreamEventsRequest taken;
    taken.Swap(&request_);
    return taken;
  }

  /// False: the server shuts down, and the call has ended. On the queue's thread.
  [[nodiscard]] bool begin(boost::asio::any_io_executor reactor, std::shared_ptr<rpc::OpenCalls> calls);
  /// Who is told. On the reactor.
  void attach(std::weak_ptr<EventStream> stream) { stream_ = std::move(stream); }

  /// Tells the client that the subscription stands. On the reactor, once, before the first write.
  void confirm();
  /// Sends one event; the stream hears `written` afterwards. On the reactor, with no other write under way.
  void write(events::EventPtr event);
  /// Ends the call, after the write under way if there is one. Later calls do nothing.
  void finish(const grpc::Status& status);
  /// As `finish`, but without waiting for the peer to take the write under way: it sees CANCELLED.
  void cut_off(const grpc::Status& status);

  void abort(const grpc::Status& status) override { finish(status); }

 private:
  using Tag = rpc::OwnCompletion<EventWriter>;

  // All on the queue's thread.
  void on_arrived(bool ok);
  void on_confirmed(bool ok);
  void on_written(bool ok);
  void on_left(bool ok);
  void on_finished(bool ok);
  /// One of those that were asked for has come.
  void release();

  Service& service_;
  grpc::ServerCompletionQueue& queue_;
  std::shared_ptr<const Arrived> arrived_;
  std::shared_ptr<rpc::OpenCalls> calls_;
  std::optional<boost::asio::any_io_executor> reactor_;
  std::weak_ptr<EventStream> stream_;  // touched on the reactor only

  grpc::ServerContext context_;
  v1::StreamEventsRequest request_;
  grpc::ServerAsyncWriter<v1::Event> writer_{&context_};
  Tag arrived_tag_{*this, &EventWriter::on_arrived};
  Tag confirmed_tag_{*this, &EventWriter::on_confirmed};
  Tag written_tag_{*this, &EventWriter::on_written};
  Tag left_tag_{*this, &EventWriter::on_left};
  Tag finished_tag_{*this, &EventWriter::on_finished};

  std::mutex mutex_;  // for all that follows
  std::shared_ptr<EventWriter> self_;
  int asked_for_ = 1;  // of gRPC, and not told yet: that it was left
  events::EventPtr in_flight_;
  std::optional<grpc::Status> last_words_;  // to finish with once the write is done
  bool finished_ = false;
};

}  // namespace evictd::api
