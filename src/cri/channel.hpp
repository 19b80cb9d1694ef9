#pragma once
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cri/call_observer.hpp"
#include "cri/presence.hpp"
#include "cri/reply.hpp"
#include "rpc/connection.hpp"

// For the sources of this folder.
namespace evictd::cri {

namespace asio = boost::asio;

inline constexpr std::string_view runtime_service = "runtime.v1.RuntimeService";
inline constexpr std::string_view images_service = "runtime.v1.ImageService";

/// What is asked of the runtime.
struct Question {
  std::string_view service;  ///< one of the above
  std::string_view method;   ///< "Version", which names the call in errors and to the observer as well
  std::string message{};     ///< the request, serialized
  std::chrono::milliseconds deadline{};
  /// containerd itself sends no more than 16 MiB. 250 pods with long annotations come near gRPC's usual 4 MiB.
  std::size_t largest_answer = 16 << 20;

  [[nodiscard]] std::string path() const;
};

/// The client's connection, made anew where the runtime has closed it, and the watch over the runtime. The coroutines
/// of calls share it with the client, so that one which completes after the client has gone finds a closed channel and
/// not a dead one.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(asio::any_io_executor reactor, std::string endpoint);

  /// Cancels all calls and closes the connection. Later calls fail as cancelled.
  void close();

  [[nodiscard]] const std::string& endpoint() const { return endpoint_; }

  void watch(PresenceListener& listener);
  void observe(CallObserver* observer) { observer_ = observer; }
  [[nodiscard]] bool connected() const { return presence_ && presence_->present; }

  /// Asks, and parses what is answered into `response`. On the reactor. Nothing is thrown.
  static asio::awaitable<Reply<void>> call(std::shared_ptr<Channel> self, Question question,
                                           std::shared_ptr<google::protobuf::MessageLite> response);

  /// Client::read_on.
  static asio::awaitable<Reply<void>> read_on(std::shared_ptr<Channel> self, std::move_only_function<void()> work);

  // For streams over it (stream_call.hpp).

  /// Nothing may be begun any more.
  [[nodiscard]] bool is_closed() const { return closed_; }
  /// An open connection, or how a call ends for want of one.
  [[nodiscard]] std::expected<std::shared_ptr<rpc::Connection>, grpc::Status> connect();
  /// Also wakes the watch where the status says that the runtime may be gone.
  CallError describe(std::string_view name, const grpc::Status& status, std::chrono::milliseconds deadline);

 private:
  /// False if it is no such message. What takes long is done beside the reactor.
  static asio::awaitable<bool> parse(std::shared_ptr<Channel> self, std::string bytes,
                                     std::shared_ptr<google::protobuf::MessageLite> message);
  [[nodiscard]] bool has_parser();
  void tell_observer(std::string_view method, grpc::StatusCode code, std::chrono::nanoseconds took) const;
  asio::awaitable<Presence> probe();
  static asio::awaitable<void> look_after(std::shared_ptr<Channel> self);

  asio::any_io_executor reactor_;
  std::string endpoint_;
  std::vector<std::shared_ptr<rpc::Connection>> connections_;  // the last is for new calls, others have calls still
  std::optional<asio::thread_pool> parser_;                    // one thread, from the first large answer on
  std::atomic<bool> closed_ = false;                           // the parser looks at it, too
  CallObserver* observer_ = nullptr;

  PresenceListener* listener_ = nullptr;  // null: not watched, or closed
  std::optional<Presence> presence_;
  asio::steady_timer next_look_;
};

}  // namespace evictd::cri
