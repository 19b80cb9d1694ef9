#include "cri/channel.hpp"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>

#include <boost/asio/as_tuple.hpp>

#include "async/spawn.hpp"
#include "core/duration.hpp"
#include "core/printable.hpp"
#include "cri/call.hpp"
#include "cri/code_name.hpp"
#include "cri/local_channel.hpp"

namespace evictd::cri {
namespace {

using namespace std::chrono_literals;
using Runtime = v1::RuntimeService::StubInterface;

// A Version call takes 0.3 ms. A glance at the channel's state costs nothing but a wake-up; an absent runtime is looked
// for more often, because without it no pod can be evicted.
constexpr auto look_while_present = 3s;
constexpr auto look_while_absent = 250ms;
constexpr auto probe_deadline = 2s;

grpc::ChannelArguments channel_arguments() {
  auto arguments = local_channel_arguments();
  // 250 pods with long annotations come near the default of 4 MiB. containerd itself sends no more than 16 MiB.
  arguments.SetMaxReceiveMessageSize(16 << 20);
  return arguments;
}

/// gRPC looks at a message's size when it has all of it, so the limit alone saves nothing. A quota has it give up the
/// stream that fills it. Measured with an answer of 16 MB: 1.9 MB more memory instead of 16.8.
grpc::ChannelArguments bounded_arguments() {
  auto arguments = local_channel_arguments();
  arguments.SetMaxReceiveMessageSize(256 << 10);
  grpc::ResourceQuota quota;
  quota.Resize(1 << 20);
  arguments.SetResourceQuota(quota);
  return arguments;
}

Failure failure_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::NOT_FOUND: return Failure::NotFound;
    case grpc::StatusCode::UNAVAILABLE: return Failure::Unavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return Failure::DeadlineExceeded;
    case grpc::StatusCode::CANCELLED: return Failure::Cancelled;
    case grpc::StatusCode::UNIMPLEMENTED: return Failure::Unimplemented;
    default: return Failure::Refused;
  }
}

}  // namespace

Channel::Channel(asio::any_io_executor reactor, std::string endpoint)
    : reactor_(std::move(reactor)),
      endpoint_(std::move(endpoint)),
      channel_(grpc::CreateCustomChannel(endpoint_, grpc::InsecureChannelCredentials(), channel_arguments())),
      runtime_(v1::RuntimeService::NewStub(channel_)),
      images_(v1::ImageService::NewStub(channel_)),
      next_look_(reactor_) {}

std::shared_ptr<Runtime> Channel::bounded_stub() const {
  return v1::RuntimeService::NewStub(
      grpc::CreateCustomChannel(endpoint_, grpc::InsecureChannelCredentials(), bounded_arguments()));
}

void Channel::close() {
  closed_ = true;
  next_look_.cancel();
  listener_ = nullptr;
  observer_ = nullptr;
  in_flight_->cancel_all();
  in_flight_->wait_until_returned();
  queue_thread_.reset();
  runtime_.reset();
  images_.reset();
  channel_.reset();
}

void Channel::tell_observer(std::string_view name, grpc::StatusCode code,
                            std::chrono::steady_clock::time_point begun) const {
  if (observer_ == nullptr) return;
  observer_->called({.method = name, .code = name_of(code), .time = std::chrono::steady_clock::now() - begun});
}

CallError Channel::describe(std::string_view name, const grpc::Status& status, std::chrono::milliseconds deadline) {
  const auto failure = failure_of(status.error_code());
  // It may quote what a pod is made of.
  const auto said = core::printable(status.error_message());
  const auto reason = [&]() -> std::string {
    switch (failure) {
      case Failure::Unavailable: return fmt::format("no container runtime answers; is it running? ({})", said);
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
  return {failure, Error{reason}.in(fmt::format("{}: {}", endpoint_, name))};
}

void Channel::watch(PresenceListener& listener) {
  listener_ = &listener;
  async::spawn(reactor_, look_after(shared_from_this()), "looking for the runtime");
}

asio::awaitable<Presence> Channel::probe() {
  v1::VersionRequest request;
  request.set_version("v1");
  const auto version =
      co_await call(shared_from_this(), "Version", &Runtime::PrepareAsyncVersion, std::move(request), probe_deadline);
  if (!version) co_return Presence{.present = false, .detail = version.error().error.message};
  co_return Presence{.present = true, .detail = version->runtime_name() + " " + version->runtime_version()};
}

asio::awaitable<void> Channel::look_after(std::shared_ptr<Channel> self) {
  while (!self->closed_) {
    // An idle channel is not a lost one, so only a call that fails makes the runtime absent.
    if (!self->connected() || self->channel_->GetState(false) != GRPC_CHANNEL_READY) {
      // gRPC's own timer for the next attempt stands still while the wall clock is set back (call.hpp).
      grpc::experimental::ChannelResetConnectionBackoff(self->channel_.get());
      auto presence = co_await self->probe();
      if (self->closed_) co_return;
      const bool changed = !self->presence_ || self->presence_->present != presence.present;
      self->presence_ = std::move(presence);
      if (changed) {
        const auto told = *self->presence_;  // a copy: the listener may destroy the client
        self->listener_->presence_changed(told);
        if (self->closed_) co_return;
      }
    }
    self->next_look_.expires_after(self->connected() ? look_while_present : look_while_absent);
    co_await self->next_look_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

}  // namespace evictd::cri
