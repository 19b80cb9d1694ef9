#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "os/file_descriptor.hpp"
#include "rpc/exchange.hpp"

struct nghttp2_session;

namespace evictd::rpc {

/// A connection to a gRPC server on a unix socket, as a client: HTTP/2 (nghttp2) on the reactor. There is no thread, no
/// timer and no lock, so it costs nothing while nobody says anything, and what a call has to wait for is the server
/// alone. The server may send what it likes: it breaks this connection at most.
///
/// gRPC's own client wakes two threads several times a second for timers that nobody set (1.51), and hands each answer
/// from thread to thread.
///
/// Everything is for the reactor's thread. Nothing is thrown, and nobody is called back: what happened stands in the
/// exchanges.
class Connection : public std::enable_shared_from_this<Connection> {
  struct Private {};

 public:
  /// Connects, which on a unix socket is done at once or not at all. The error says why not, without the path.
  [[nodiscard]] static Result<std::shared_ptr<Connection>> to(const boost::asio::any_io_executor& reactor,
                                                              std::string_view path);
  /// `socket`: a unix stream socket that is connected and does not block.
  [[nodiscard]] static std::shared_ptr<Connection> begin(const boost::asio::any_io_executor& reactor,
                                                         os::FileDescriptor socket);
  Connection(Private, const boost::asio::any_io_executor& reactor, os::FileDescriptor socket);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// New calls may be made. False for ever once the server has closed it, said that it goes, or sent what is no HTTP/2.
  [[nodiscard]] bool is_open() const { return !ended_ && !is_going_; }
  /// Every call over it has ended as well.
  [[nodiscard]] bool has_ended() const { return ended_; }
  /// Completes when it is not open, at once if it is not.
  [[nodiscard]] boost::asio::awaitable<void> until_lost();
  [[nodiscard]] const boost::asio::any_io_executor& reactor() const { return reactor_; }

  /// Sends a call with its only message. `path`: "/runtime.v1.RuntimeService/Version". `deadline`: what the server is
  /// told, which keeps it by itself; zero: none. Where the connection is not open the call ends as UNAVAILABLE.
  void send(std::string_view path, std::string_view message, std::chrono::milliseconds deadline,
            const std::shared_ptr<Exchange>& exchange);
  /// Ends the call as CANCELLED, here and at the server. Nothing if it has ended.
  void cancel(const std::shared_ptr<Exchange>& exchange);
  /// The caller has taken all messages of a stream: the server may send as much again.
  void make_room(const std::shared_ptr<Exchange>& exchange);
  /// Takes what has come in by now, if the reactor has not come to it: also that the server has gone.
  void read();

  /// Ends all calls as CANCELLED, and the connection.
  void close();

 private:
  struct Call {
    std::shared_ptr<Exchange> exchange;
    std::string message;  ///< framed
    std::size_t sent = 0;
  };
  struct Callbacks;
  struct Freed {
    void operator()(nghttp2_session* session) const;
  };

  [[nodiscard]] std::optional<std::int32_t> stream_of(const Exchange& exchange) const;
  void receive();
  void finish(std::int32_t stream, grpc::Status status);
  void reset(std::int32_t stream, grpc::Status status);
  void server_ended(std::int32_t stream);
  void stop_calling();
  void lose(const grpc::Status& status);
  void wait_to_read();
  void wait_to_write();
  void write();
  [[nodiscard]] bool fill();

  boost::asio::any_io_executor reactor_;
  boost::asio::local::stream_protocol::socket socket_;
  std::unique_ptr<nghttp2_session, Freed> session_;
  std::map<std::int32_t, Call> calls_{};  ///< by stream
  std::string out_{};                     ///< what the kernel has not taken yet, from out_sent_
  std::size_t out_sent_ = 0;
  bool waits_to_write_ = false;
  bool can_write_ = true;
  bool is_going_ = false;
  bool ended_ = false;
  boost::asio::steady_timer loss_;  ///< cancelled when it is lost
};

}  // namespace evictd::rpc
