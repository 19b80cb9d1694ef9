#pragma once
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/status.h>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <expected>
#include <memory>
#include <string_view>
#include <utility>

#include "cri/channel.hpp"
#include "cri/completion.hpp"
#include "cri/in_flight.hpp"
#include "cri/reply.hpp"

// A call over the channel: gRPC's completion queue as an awaitable. For the sources of this folder.
namespace evictd::cri {

template <class Response>
struct Answer {
  grpc::Status status;
  Response response;
};

/// One unary call on its way. It owns all that gRPC borrows until the call ends, and the handler that continues the
/// coroutine.
template <class Request, class Response>
struct Call {
  using Reader = grpc::ClientAsyncResponseReaderInterface<Response>;

  std::shared_ptr<InFlight> in_flight;
  asio::any_io_executor
      reactor;  ///< counts as outstanding work, so that the reactor does not run out before the answer
  asio::steady_timer timer;
  asio::any_completion_handler<void(Answer<Response>)> handler;
  Request request;
  Response response{};
  grpc::Status status{};
  grpc::ClientContext context{};
  std::unique_ptr<Reader> reader{};  ///< lives in the memory of the call, which the context holds

  /// On the reactor.
  static void end_after(const std::shared_ptr<Call>& call, std::chrono::milliseconds deadline) {
    call->timer.expires_after(deadline);
    call->timer.async_wait([weak = std::weak_ptr(call)](boost::system::error_code ended_before) {
      const auto call = weak.lock();
      if (ended_before || call == nullptr) return;
      call->context.TryCancel();
    });
  }

  /// On the reactor.
  void finish() {
    in_flight->ended(context);
    timer.cancel();
    asio::get_associated_cancellation_slot(handler).clear();
    if (std::chrono::steady_clock::now() >= timer.expiry()) status = at_deadline(std::move(status));
    std::move(handler)(Answer<Response>{std::move(status), std::move(response)});
  }

  /// The runtime has the same deadline, and ends what it does in words of its own (containerd: an unknown error,
  /// "context deadline exceeded"): on a busy node chance has it whose end is heard first.
  static grpc::Status at_deadline(grpc::Status status) {
    const auto code = status.error_code();
    if (code != grpc::StatusCode::CANCELLED && code != grpc::StatusCode::UNKNOWN) return status;
    return {grpc::StatusCode::DEADLINE_EXCEEDED, code == grpc::StatusCode::UNKNOWN ? status.error_message() : ""};
  }

  /// On the queue's thread, which keeps nothing: the call lives on in the reactor's queue alone, and the reactor is not
  /// touched once the call counts as returned.
  static void hand_over(std::shared_ptr<Call> call) {
    const auto in_flight = call->in_flight;
    {
      const auto reactor = std::move(call->reactor);
      asio::post(reactor, [call = std::move(call)] { call->finish(); });
    }
    in_flight->returned();
  }

  /// gRPC's share of the call.
  struct Ended final : Completion {
    explicit Ended(std::shared_ptr<Call> ended) : call(std::move(ended)) {}
    void complete(bool /*ok*/) override {
      const std::unique_ptr<Ended> self(this);
      hand_over(std::move(call));
    }
    std::shared_ptr<Call> call;
  };
};

/// Begins a call when awaited and yields gRPC's status with the response. `prepare(context, request)` gives the reader
/// of a stub whose completion queue has a CompletionThread. The deadline runs on the monotonic clock: setting the wall
/// clock neither shortens nor stretches it. Therefore it is the reactor's: gRPC 1.51 takes a monotonic deadline, but
/// its timers sleep until a wall-clock time (gpr_cv_wait, abseil's FUTEX_CLOCK_REALTIME) and stand still once the clock
/// was set back. gRPC's own deadline is sent to the runtime. Cancelling the coroutine cancels the
/// call; the status says so, nothing is thrown here.
template <class Response, class Request, class Prepare>
asio::awaitable<Answer<Response>> async_call(asio::any_io_executor reactor, std::shared_ptr<InFlight> in_flight,
                                             Request request, std::chrono::milliseconds deadline, Prepare prepare) {
  auto initiate = [reactor = std::move(reactor), in_flight = std::move(in_flight), request = std::move(request),
                   deadline, prepare = std::move(prepare)](auto handler) mutable {
    using ThisCall = Call<Request, Response>;
    asio::steady_timer timer{reactor};
    // Not const: the queue's thread must move its share away. A copy left there would destroy the call, and with it a
    // coroutine, on that thread.
    auto call = std::shared_ptr<ThisCall>(new ThisCall{
        .in_flight = std::move(in_flight),
        .reactor = asio::prefer(std::move(reactor), asio::execution::outstanding_work.tracked),
        .timer = std::move(timer),
        .handler = std::move(handler),
        .request = std::move(request),
    });
    call->context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(deadline.count(), GPR_TIMESPAN)));
    // finish() clears the slot before the call goes, so the plain pointer is safe.
    if (auto slot = asio::get_associated_cancellation_slot(call->handler); slot.is_connected())
      slot.assign([context = &call->context](asio::cancellation_type) { context->TryCancel(); });

    call->in_flight->began(call->context);
    call->in_flight->lent();
    ThisCall::end_after(call, deadline);
    call->reader = prepare(&call->context, call->request);
    auto& reader = *call->reader;
    auto& response = call->response;
    auto& status = call->status;
    reader.StartCall();
    reader.Finish(&response, &status, (new typename ThisCall::Ended(std::move(call)))->tag());
  };
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Answer<Response>)>(std::move(initiate),
                                                                                     asio::use_awaitable);
}

/// The stub's method that prepares a call for a completion queue.
template <class Service, class Request, class Response>
using Method = std::unique_ptr<grpc::ClientAsyncResponseReaderInterface<Response>> (Service::*)(grpc::ClientContext*,
                                                                                                const Request&,
                                                                                                grpc::CompletionQueue*);

/// On the reactor. `name`: of the method, for the observer and for what went wrong. `own`: a stub for this call alone;
/// null: the channel's. Nothing is thrown.
template <class Service, class Request, class Response>
asio::awaitable<Reply<Response>> call(std::shared_ptr<Channel> channel, std::string_view name,
                                      Method<Service, Request, Response> method, Request request,
                                      std::chrono::milliseconds deadline, std::shared_ptr<Service> own = nullptr) {
  if (channel->is_closed()) co_return std::unexpected(channel->describe(name, grpc::Status::CANCELLED, deadline));
  const auto begun = std::chrono::steady_clock::now();
  auto* const stub = own ? own.get() : channel->stub<Service>();
  auto prepare = [stub, method, queue = &channel->queue()](auto* context, const auto& asked) {
    return (stub->*method)(context, asked, queue);
  };
  auto answer =
      co_await async_call<Response>(channel->reactor(), channel->in_flight(), std::move(request), deadline, prepare);
  channel->tell_observer(name, answer.status.error_code(), begun);
  if (answer.status.ok()) co_return std::move(answer.response);
  co_return std::unexpected(channel->describe(name, answer.status, deadline));
}

}  // namespace evictd::cri
