#pragma once
#include <grpcpp/client_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/status.h>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "cri/completion.hpp"
#include "cri/in_flight.hpp"

// A server stream of gRPC's completion queue as awaitables. For the sources of this folder: it brings in gRPC's
// headers.
namespace evictd::cri {
namespace asio = boost::asio;

/// What gRPC borrows of one stream until it ends. It is made and goes on the reactor; in between, while a step is under
/// way, it is gRPC's.
template <class Request, class Response>
struct StreamCall {
  using Reader = grpc::ClientAsyncReaderInterface<Response>;

  StreamCall(std::shared_ptr<InFlight> calls, Request asked) : in_flight(std::move(calls)), request(std::move(asked)) {
    in_flight->began(context);
  }
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;
  ~StreamCall() { in_flight->ended(context); }

  std::shared_ptr<InFlight> in_flight;
  Request request;
  grpc::ClientContext context{};
  std::unique_ptr<Reader> reader{};  ///< lives in the memory of the call, which the context holds
  Response response{};
  grpc::Status status{};
  bool started = false;
  bool ended = false;
};

/// A message; absent: there is none, or what came is none.
template <class Response>
using Message = std::optional<Response>;

/// One thing at a time that gRPC does for a stream. It has the handler, and not the call, which the coroutine behind
/// the handler has itself: they would keep each other.
template <class Request, class Response>
class StreamStep final : public Completion {
 public:
  using Call = StreamCall<Request, Response>;
  using Handler = asio::any_completion_handler<void(Message<Response>)>;
  enum class Kind : std::uint8_t {
    Read,    ///< opens the stream at the first one
    Finish,  ///< asks how it ended: once, after a read that brought no message
  };

  StreamStep(Kind kind, std::shared_ptr<Call> call, asio::any_io_executor reactor, Handler handler)
      : kind_(kind),
        call_(std::move(call)),
        reactor_(asio::prefer(std::move(reactor), asio::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}

  /// On the reactor. From now on this is gRPC's, until it deletes itself.
  void begin() {
    call_->in_flight->lent();
    if (kind_ == Kind::Finish) return call_->reader->Finish(&call_->status, tag());
    if (std::exchange(call_->started, true)) return read();
    is_opening_ = true;
    call_->reader->StartCall(tag());
  }

  /// On the queue's thread, which keeps nothing of the call, as in Call::hand_over().
  void complete(bool ok) override {
    if (std::exchange(is_opening_, false)) return read();
    const std::unique_ptr<StreamStep> self(this);
    const auto in_flight = call_->in_flight;
    {
      const auto reactor = std::move(reactor_);
      asio::post(reactor, [has_message = kind_ == Kind::Read && ok, call = std::move(call_),
                           handler = std::move(handler_)]() mutable {
        Message<Response> message;
        if (has_message) message = std::exchange(call->response, {});
        std::move(handler)(std::move(message));
      });
    }
    in_flight->returned();
  }

 private:
  void read() { call_->reader->Read(&call_->response, tag()); }

  Kind kind_;
  std::shared_ptr<Call> call_;
  asio::any_io_executor reactor_;  ///< counts as outstanding work
  Handler handler_;
  bool is_opening_ = false;
};

/// For a stream that is not closed and in which no other step is under way. Nothing is thrown.
template <class Request, class Response>
asio::awaitable<Message<Response>> async_step(typename StreamStep<Request, Response>::Kind kind,
                                              asio::any_io_executor reactor,
                                              std::shared_ptr<StreamCall<Request, Response>> call) {
  auto initiate = [kind, reactor = std::move(reactor), call = std::move(call)](auto handler) mutable {
    using One = StreamStep<Request, Response>;
    (new One(kind, std::move(call), std::move(reactor), typename One::Handler{std::move(handler)}))->begin();
  };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Message<Response>)>(std::move(initiate),
                                                                                      asio::use_awaitable);
}

}  // namespace evictd::cri
