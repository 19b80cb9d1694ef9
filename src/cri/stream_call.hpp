#pragma once
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/status.h>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "cri/channel.hpp"
#include "cri/completion.hpp"
#include "cri/in_flight.hpp"
#include "cri/reply.hpp"
#include "cri/stream.hpp"

// A server stream over the channel: gRPC's completion queue as awaitables. For the sources of this folder.
namespace evictd::cri {

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

/// The method of a stub that prepares a server stream for a completion queue.
template <class Request, class Response>
using StreamMethod = std::unique_ptr<grpc::ClientAsyncReaderInterface<Response>> (v1::RuntimeService::StubInterface::*)(
    grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

/// Nothing happens before the first next(). It shares the channel, which may be closed meanwhile.
template <class Request, class Response>
class OpenStream final : public Stream<Response> {
 public:
  OpenStream(std::shared_ptr<Channel> channel, std::string_view name, StreamMethod<Request, Response> method,
             Request request)
      : channel_(std::move(channel)),
        name_(name),
        method_(method),
        call_(std::make_shared<StreamCall<Request, Response>>(channel_->in_flight(), std::move(request))) {}
  ~OpenStream() override { call_->context.TryCancel(); }

  asio::awaitable<Reply<Response>> next() override { return next(channel_, name_, method_, call_); }
  void cancel() override { call_->context.TryCancel(); }

 private:
  using Kind = typename StreamStep<Request, Response>::Kind;

  /// Holds all that it needs: the stream may go meanwhile.
  static asio::awaitable<Reply<Response>> next(std::shared_ptr<Channel> channel, std::string_view name,
                                               StreamMethod<Request, Response> method,
                                               std::shared_ptr<StreamCall<Request, Response>> call) {
    constexpr std::chrono::milliseconds none{0};
    if (channel->is_closed() || call->ended)
      co_return std::unexpected(channel->describe(name, grpc::Status::CANCELLED, none));
    if (call->reader == nullptr)
      call->reader = (channel->stub<v1::RuntimeService::StubInterface>()->*method)(&call->context, call->request,
                                                                                   &channel->queue());
    auto message = co_await async_step<Request, Response>(Kind::Read, channel->reactor(), call);
    if (message) co_return *std::move(message);
    call->ended = true;
    if (channel->is_closed()) co_return std::unexpected(channel->describe(name, grpc::Status::CANCELLED, none));
    const auto status = co_await end(channel, call);
    co_return std::unexpected(channel->describe(name, status, none));
  }

  /// How the stream ended. What is no message ends only our side, and gRPC would wait for the runtime's.
  static asio::awaitable<grpc::Status> end(std::shared_ptr<Channel> channel,
                                           std::shared_ptr<StreamCall<Request, Response>> call) {
    // It may have expired when it is cancelled, and run when this is gone.
    const auto was_no_message = std::make_shared<bool>(false);
    asio::steady_timer late{channel->reactor(), std::chrono::milliseconds{500}};
    late.async_wait([call, was_no_message](boost::system::error_code ended_before) {
      if (ended_before) return;
      *was_no_message = true;
      call->context.TryCancel();
    });
    co_await async_step<Request, Response>(Kind::Finish, channel->reactor(), call);
    late.cancel();
    if (*was_no_message) co_return grpc::Status{grpc::StatusCode::INTERNAL, "the runtime sent what is no message"};
    // To a caller it is the same whether the runtime goes in order or not.
    if (call->status.ok()) co_return grpc::Status{grpc::StatusCode::UNAVAILABLE, "the runtime ended the stream"};
    co_return call->status;
  }

  std::shared_ptr<Channel> channel_;
  std::string_view name_;
  StreamMethod<Request, Response> method_;
  std::shared_ptr<StreamCall<Request, Response>> call_;
};

}  // namespace evictd::cri
