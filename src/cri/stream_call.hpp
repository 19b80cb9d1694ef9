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

/// What gRPC borrows of one stream until it ends. It is made and goes on the reactor; in between, while a Step is under
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

/// A message, or where there is none how the stream ended.
template <class Response>
struct Step {
  std::optional<Response> message;
  grpc::Status status;
};

/// gRPC's share of a step: opens the stream at the first one, reads a message, and where there is none asks why. It has
/// the handler, and not the call, which the coroutine behind the handler has itself: they would keep each other.
template <class Request, class Response>
class StepUnderWay final : public Completion {
 public:
  using Call = StreamCall<Request, Response>;
  using Handler = asio::any_completion_handler<void(Step<Response>)>;

  StepUnderWay(std::shared_ptr<Call> call, asio::any_io_executor reactor, Handler handler)
      : call_(std::move(call)),
        reactor_(asio::prefer(std::move(reactor), asio::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}

  /// On the reactor. From now on this is gRPC's, until it deletes itself.
  void begin() {
    call_->in_flight->lent();
    if (std::exchange(call_->started, true)) return read();
    call_->reader->StartCall(tag());
  }

  /// On the queue's thread, which keeps nothing of the call, as in Call::hand_over().
  void complete(bool ok) override {
    if (doing_ == Doing::Open) return read();
    if (doing_ == Doing::Read && !ok) {
      doing_ = Doing::Finish;
      return call_->reader->Finish(&call_->status, tag());
    }
    const std::unique_ptr<StepUnderWay> self(this);
    const auto in_flight = call_->in_flight;
    {
      const auto reactor = std::move(reactor_);
      asio::post(reactor, [has_message = doing_ == Doing::Read, call = std::move(call_),
                           handler = std::move(handler_)]() mutable { hand_over(has_message, *call, handler); });
    }
    in_flight->returned();
  }

 private:
  enum class Doing : std::uint8_t { Open, Read, Finish };

  void read() {
    doing_ = Doing::Read;
    call_->reader->Read(&call_->response, tag());
  }

  /// On the reactor.
  static void hand_over(bool has_message, Call& call, Handler& handler) {
    Step<Response> step{.message = {}, .status = std::move(call.status)};
    if (has_message) step.message = std::exchange(call.response, {});
    std::move(handler)(std::move(step));
  }

  std::shared_ptr<Call> call_;
  asio::any_io_executor reactor_;  ///< counts as outstanding work
  Handler handler_;
  Doing doing_ = Doing::Open;
};

/// The next step of a stream that is not closed and in which no other step is under way. Nothing is thrown.
template <class Request, class Response>
asio::awaitable<Step<Response>> async_step(asio::any_io_executor reactor,
                                           std::shared_ptr<StreamCall<Request, Response>> call) {
  auto initiate = [reactor = std::move(reactor), call = std::move(call)](auto handler) mutable {
    using Under = StepUnderWay<Request, Response>;
    (new Under(std::move(call), std::move(reactor), typename Under::Handler{std::move(handler)}))->begin();
  };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Step<Response>)>(std::move(initiate),
                                                                                   asio::use_awaitable);
}

}  // namespace evictd::cri
