#pragma once
#include <grpcpp/support/server_callback.h>

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "api/open_calls.hpp"
#include "events/event_log.hpp"
#include "evictd.pb.h"

namespace evictd::api {

class EventStream;

/// gRPC's side of a subscription: one write at a time, the message held until gRPC is done with it, Finish exactly once
/// and never beside a write.
///
/// Its own rules hold without the reactor, so a server can end its streams while the reactor stands still. Everything
/// else it hears from gRPC's threads it posts to the EventStream. OpenCalls owns it up to OnDone, which is the last
/// that gRPC calls.
class EventWriter final : public grpc::ServerWriteReactor<v1::Event>,
                          public OpenCall,
                          public std::enable_shared_from_this<EventWriter> {
 public:
  EventWriter(grpc::CallbackServerContext& context, boost::asio::any_io_executor reactor,
              std::shared_ptr<OpenCalls> calls);

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
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  grpc::CallbackServerContext& context_;  // gRPC's; valid until Finish
  boost::asio::any_io_executor reactor_;
  std::shared_ptr<OpenCalls> calls_;
  std::weak_ptr<EventStream> stream_;  // touched on the reactor only

  std::mutex mutex_;
  events::EventPtr in_flight_;
  std::optional<grpc::Status> last_words_;  // to finish with once the write is done
  bool finished_ = false;
};

}  // namespace evictd::api
