#pragma once
#include <api.grpc.pb.h>
#include <grpcpp/channel.h>

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cri/call.hpp"
#include "cri/call_observer.hpp"
#include "cri/completion.hpp"
#include "cri/presence.hpp"
#include "cri/reply.hpp"
#include "cri/stream.hpp"
#include "cri/stream_call.hpp"

namespace evictd::cri {

namespace v1 = ::runtime::v1;

/// The method of a stub that prepares a server stream for a completion queue.
template <class Request, class Response>
using StreamMethod = std::unique_ptr<grpc::ClientAsyncReaderInterface<Response>> (v1::RuntimeService::StubInterface::*)(
    grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

/// The client's connection: the gRPC channel with its stubs, the calls under way, and the watch over the runtime. The
/// coroutines of calls share it with the client, so that one which completes after the client has gone finds a closed
/// channel and not a dead one.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(asio::any_io_executor reactor, std::string endpoint);

  /// Cancels all calls and lets go of gRPC. Later calls fail as cancelled.
  void close();

  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  void watch(PresenceListener& listener);
  void observe(CallObserver* observer) { observer_ = observer; }
  [[nodiscard]] bool connected() const { return presence_ && presence_->present; }

  /// The stub's method that prepares a call for a completion queue.
  template <class Service, class Request, class Response>
  using Method = std::unique_ptr<grpc::ClientAsyncResponseReaderInterface<Response>> (Service::*)(
      grpc::ClientContext*, const Request&, grpc::CompletionQueue*);

  template <class Service, class Request, class Response>
  static asio::awaitable<Reply<Response>> call(std::shared_ptr<Channel> self, std::string_view name,
                                               Method<Service, Request, Response> method, Request request,
                                               std::chrono::milliseconds deadline) {
    if (self->closed_) co_return std::unexpected(self->describe(name, grpc::Status::CANCELLED, deadline));
    const auto begun = std::chrono::steady_clock::now();
    auto prepare = [stub = self->stub<Service>(), method, queue = &self->queue_](auto* context, const auto& asked) {
      return (stub->*method)(context, asked, queue);
    };
    auto answer =
        co_await async_call<Response>(self->reactor_, self->in_flight_, std::move(request), deadline, prepare);
    if (self->observer_ != nullptr) self->tell_observer(name, answer.status.error_code(), begun);
    if (answer.status.ok()) co_return std::move(answer.response);
    co_return std::unexpected(self->describe(name, answer.status, deadline));
  }

  /// Nothing happens before the first next().
  template <class Request, class Response>
  std::unique_ptr<Stream<Response>> stream(std::string_view name, StreamMethod<Request, Response> method,
                                           Request request) {
    return std::make_unique<OpenStream<Request, Response>>(shared_from_this(), name, method, std::move(request));
  }

 private:
  template <class Request, class Response>
  class OpenStream;

  template <class Service>
  Service* stub() {
    if constexpr (std::is_same_v<Service, v1::RuntimeService::StubInterface>)
      return runtime_.get();
    else
      return images_.get();
  }

  void tell_observer(std::string_view name, grpc::StatusCode code, std::chrono::steady_clock::time_point begun) const;
  /// Also wakes the watch where the status says that the runtime may be gone.
  CallError describe(std::string_view name, const grpc::Status& status, std::chrono::milliseconds deadline);
  asio::awaitable<Presence> probe();
  static asio::awaitable<void> look_after(std::shared_ptr<Channel> self);

  asio::any_io_executor reactor_;
  std::string endpoint_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::RuntimeService::StubInterface> runtime_;
  std::unique_ptr<v1::ImageService::StubInterface> images_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<CompletionThread> queue_thread_ = std::make_unique<CompletionThread>(queue_, "runtime calls");
  std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  bool closed_ = false;
  CallObserver* observer_ = nullptr;

  PresenceListener* listener_ = nullptr;  // null: not watched, or closed
  std::optional<Presence> presence_;
  asio::steady_timer next_look_;
};

template <class Request, class Response>
class Channel::OpenStream final : public Stream<Response> {
 public:
  OpenStream(std::shared_ptr<Channel> channel, std::string_view name, StreamMethod<Request, Response> method,
             Request request)
      : channel_(std::move(channel)),
        name_(name),
        method_(method),
        call_(std::make_shared<StreamCall<Request, Response>>(channel_->in_flight_, std::move(request))) {}
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
    if (channel->closed_ || call->ended)
      co_return std::unexpected(channel->describe(name, grpc::Status::CANCELLED, none));
    if (call->reader == nullptr)
      call->reader = (channel->runtime_.get()->*method)(&call->context, call->request, &channel->queue_);
    auto message = co_await async_step<Request, Response>(Kind::Read, channel->reactor_, call);
    if (message) co_return *std::move(message);
    call->ended = true;
    if (channel->closed_) co_return std::unexpected(channel->describe(name, grpc::Status::CANCELLED, none));
    const auto status = co_await end(channel, call);
    co_return std::unexpected(channel->describe(name, status, none));
  }

  /// How the stream ended. What is no message ends only our side, and gRPC would wait for the runtime's.
  static asio::awaitable<grpc::Status> end(std::shared_ptr<Channel> channel,
                                           std::shared_ptr<StreamCall<Request, Response>> call) {
    // It may have expired when it is cancelled, and run when this is gone.
    const auto was_no_message = std::make_shared<bool>(false);
    asio::steady_timer late{channel->reactor_, std::chrono::milliseconds{500}};
    late.async_wait([call, was_no_message](boost::system::error_code ended_before) {
      if (ended_before) return;
      *was_no_message = true;
      call->context.TryCancel();
    });
    co_await async_step<Request, Response>(Kind::Finish, channel->reactor_, call);
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
