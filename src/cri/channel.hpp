#pragma once
#include <api.grpc.pb.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/status.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cri/call_observer.hpp"
#include "cri/completion.hpp"
#include "cri/in_flight.hpp"
#include "cri/presence.hpp"
#include "cri/reply.hpp"

// For the sources of this folder: it brings in gRPC's headers.
namespace evictd::cri {

namespace asio = boost::asio;
namespace v1 = ::runtime::v1;

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

  // For what is called over it (call.hpp, stream_call.hpp).

  /// Nothing may be begun any more.
  [[nodiscard]] bool is_closed() const { return closed_; }
  [[nodiscard]] const asio::any_io_executor& reactor() const { return reactor_; }
  [[nodiscard]] const std::shared_ptr<InFlight>& in_flight() const { return in_flight_; }
  [[nodiscard]] grpc::CompletionQueue& queue() { return queue_; }
  /// The stub of the service. It is there until close().
  template <class Service>
  [[nodiscard]] Service* stub() {
    if constexpr (std::is_same_v<Service, v1::RuntimeService::StubInterface>)
      return runtime_.get();
    else
      return images_.get();
  }
  /// For one call whose answer is as large as a pod likes: over a connection of its own, which takes no answer above
  /// 256 KiB (RESOURCE_EXHAUSTED) and holds about 1 MiB. On a shared one gRPC would give up any of the calls.
  [[nodiscard]] std::shared_ptr<v1::RuntimeService::StubInterface> bounded_stub() const;
  void tell_observer(std::string_view name, grpc::StatusCode code, std::chrono::steady_clock::time_point begun) const;
  /// Also wakes the watch where the status says that the runtime may be gone.
  CallError describe(std::string_view name, const grpc::Status& status, std::chrono::milliseconds deadline);

 private:
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

}  // namespace evictd::cri
