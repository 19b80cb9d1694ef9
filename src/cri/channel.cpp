#include "cri/channel.hpp"

#include <api.pb.h>
#include <fmt/format.h>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "async/offload.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "async/thread_name.hpp"
#include "core/duration.hpp"
#include "core/printable.hpp"
#include "cri/endpoint.hpp"
#include "cri/messages.hpp"
#include "rpc/call.hpp"
#include "rpc/code_name.hpp"

namespace evictd::cri {
namespace {

using namespace std::chrono_literals;

// An absent runtime is looked for often, because without it no pod can be evicted. A Version call takes 0.3 ms.
constexpr auto between_looks = 250ms;
constexpr auto probe_deadline = 2s;
/// In bytes. The reactor parses about 0.2 ms for it; the list of 1,000 pods would take 4 ms.
constexpr std::size_t quickly_parsed = 64 << 10;

/// containerd listens before it has recovered its pods, and refuses every call until then in these very words
/// (containerd #8468; seen of 1.6, and 1.7 and 2.1 have them as well). What quotes them may be of a pod's making.
bool is_starting(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNKNOWN && status.error_message() == "server is not initialized yet";
}

Failure failure_of(const grpc::Status& status) {
  if (is_starting(status)) return Failure::Unavailable;
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND: return Failure::NotFound;
    case grpc::StatusCode::UNAVAILABLE: return Failure::Unavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Failure::DeadlineExceeded;
    case grpc::StatusCode::CANCELLED: return Failure::Cancelled;
    case grpc::StatusCode::UNIMPLEMENTED: return Failure::Unimplemented;
    default: return Failure::Refused;
  }
}

}  // namespace

std::string Question::path() const { return fmt::format("/{}/{}", service, method); }

Channel::Channel(asio::any_io_executor reactor, std::string endpoint)
    : reactor_(std::move(reactor)), endpoint_(std::move(endpoint)), next_look_(reactor_) {}

void Channel::close() {
  closed_ = true;
  next_look_.cancel();
  listener_ = nullptr;
  observer_ = nullptr;
  for (const auto& connection : std::exchange(connections_, {})) connection->close();
  if (parser_) parser_->join();
}

std::expected<std::shared_ptr<rpc::Connection>, grpc::Status> Channel::connect() {
  // The runtime may have gone since the last turn.
  if (!connections_.empty()) connections_.back()->read();
  std::erase_if(connections_, [](const auto& connection) { return connection->has_ended(); });
  if (!connections_.empty() && connections_.back()->is_open()) return connections_.back();
  auto made = rpc::Connection::to(reactor_, std::string_view(endpoint_).substr(endpoint_scheme.size()));
  if (!made) return std::unexpected(grpc::Status{grpc::StatusCode::UNAVAILABLE, made.error().message});
  return connections_.emplace_back(*std::move(made));
}

asio::awaitable<Reply<void>> Channel::call(std::shared_ptr<Channel> self, Question question,
                                           std::shared_ptr<google::protobuf::MessageLite> response) {
  const auto begun = std::chrono::steady_clock::now();
  rpc::Answer answer{.status = grpc::Status::CANCELLED};
  if (!self->closed_) {
    if (const auto connected = self->connect())
      answer = co_await rpc::call(*connected, question.path(), std::move(question.message), question.deadline,
                                  question.largest_answer);
    else
      answer.status = connected.error();
  }
  const auto took = std::chrono::steady_clock::now() - begun;  // the runtime, whoever parses
  // To wait for anything more would throw.
  const asio::cancellation_state caller = co_await asio::this_coro::cancellation_state;
  if (answer.status.ok() && caller.cancelled() != asio::cancellation_type::none)
    answer.status = grpc::Status::CANCELLED;
  if (answer.status.ok()) {
    const bool is_response = co_await parse(self, std::move(answer.message), std::move(response));
    if (!is_response) answer.status = {grpc::StatusCode::INTERNAL, "the runtime answered with what is no message"};
    if (self->closed_ || caller.cancelled() != asio::cancellation_type::none) answer.status = grpc::Status::CANCELLED;
  }
  self->tell_observer(question.method, answer.status.error_code(), took);
  if (!answer.status.ok()) co_return std::unexpected(self->describe(question.method, answer.status, question.deadline));
  co_return Reply<void>{};
}

asio::awaitable<bool> Channel::parse(std::shared_ptr<Channel> self, std::string bytes,
                                     std::shared_ptr<google::protobuf::MessageLite> message) {
  if (bytes.size() <= quickly_parsed || self->closed_ || !self->has_parser()) co_return message->ParseFromString(bytes);
  auto work = [bytes = std::move(bytes), message = std::move(message)] { return message->ParseFromString(bytes); };
  co_return co_await async::offload(self->parser_->get_executor(), std::move(work));
}

asio::awaitable<Reply<void>> Channel::read_on(std::shared_ptr<Channel> self, std::move_only_function<void()> work) {
  const asio::cancellation_state caller = co_await asio::this_coro::cancellation_state;
  if (!self->closed_ && !self->has_parser()) {
    work();
  } else if (!self->closed_) {
    // Who closes this waits for the thread: there may be many before it has come to this.
    auto unless_closed = [work = std::move(work), &closed = self->closed_]() mutable {
      if (!closed) work();
      return true;
    };
    co_await async::offload(self->parser_->get_executor(), std::move(unless_closed));
  }
  if (self->closed_ || caller.cancelled() != asio::cancellation_type::none)
    co_return std::unexpected(CallError{Failure::Cancelled, Error{"cancelled"}.in(self->endpoint_)});
  co_return Reply<void>{};
}

/// Where no thread is to be had, for the node may be short of them, the reactor parses by itself.
bool Channel::has_parser() {
  if (parser_) return true;
  try {
    parser_.emplace(1);
  } catch (const boost::system::system_error&) {
    return false;
  }
  asio::post(*parser_, [] { async::name_this_thread("large answers"); });
  return true;
}

void Channel::tell_observer(std::string_view method, grpc::StatusCode code, std::chrono::nanoseconds took) const {
  if (observer_ == nullptr) return;
  observer_->called({.method = method, .code = rpc::name_of(code), .time = took});
}

CallError Channel::describe(std::string_view name, const grpc::Status& status, std::chrono::milliseconds deadline) {
  const auto failure = failure_of(status);
  // It may quote what a pod is made of.
  const auto said = core::printable(status.error_message());
  const auto reason = [&]() -> std::string {
    switch (failure) {
      case Failure::Unavailable:
        if (is_starting(status)) return fmt::format("the container runtime is starting ({})", said);
        return fmt::format("no container runtime answers; is it running? ({})", said);
      case Failure::DeadlineExceeded: {
        const bool adds = !said.empty() && said != "Deadline Exceeded";  // as gRPC says it
        return fmt::format("no answer within {}{}", core::to_string(deadline), adds ? ": " + said : "");
      }
      case Failure::Cancelled: return "cancelled";
      case Failure::NotFound:
      case Failure::Unimplemented:
      case Failure::Refused: break;
    }
    return fmt::format("{} (gRPC code {})", said, static_cast<int>(status.error_code()));
  }();
  if (failure == Failure::Unavailable) next_look_.cancel();
  return {failure, Error{reason}.in(fmt::format("{}: {}", endpoint_, name)),
          status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED};
}

void Channel::watch(PresenceListener& listener) {
  listener_ = &listener;
  async::spawn(reactor_, look_after(shared_from_this()), "looking for the runtime");
}

asio::awaitable<Presence> Channel::probe() {
  v1::VersionRequest request;
  request.set_version("v1");
  Question question{.service = runtime_service,
                    .method = "Version",
                    .message = request.SerializeAsString(),
                    .deadline = probe_deadline};
  const auto version = std::make_shared<v1::VersionResponse>();
  const auto answered = co_await call(shared_from_this(), std::move(question), version);
  if (!answered) co_return Presence{.present = false, .detail = answered.error().error.message};
  co_return Presence{.present = true, .detail = version->runtime_name() + " " + version->runtime_version()};
}

/// A runtime that is there is looked for again when its connection is lost: a call that fails is no sign by itself.
asio::awaitable<void> Channel::look_after(std::shared_ptr<Channel> self) {
  while (!self->closed_) {
    self->next_look_.expires_after(between_looks);
    auto presence = co_await self->probe();
    if (self->closed_) co_return;
    const bool changed = !self->presence_ || self->presence_->present != presence.present;
    self->presence_ = std::move(presence);
    if (changed) {
      const auto told = *self->presence_;  // a copy: the listener may destroy the client
      self->listener_->presence_changed(told);
      if (self->closed_) co_return;
    }
    if (self->connected() && !self->connections_.empty()) {
      const auto connection = self->connections_.back();
      co_await connection->until_lost();
      if (self->closed_) co_return;
    }
    co_await async::wait(self->next_look_);
  }
}

}  // namespace evictd::cri
