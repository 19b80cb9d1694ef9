#include "rpc/connection.hpp"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "async/sleep.hpp"
#include "os/unix_address.hpp"

namespace asio = boost::asio;

namespace evictd::rpc {
namespace {

/// Of one stream, in bytes: as much as a server sends of a list or of events before it waits for us.
constexpr std::int32_t stream_window = 1 << 20;
/// Of all streams. It is given back as it is read, so a stream that nobody takes from holds up no other.
constexpr std::int32_t connection_window = 4 << 20;
/// Frames that wait for a server that does not read, of about 700 bytes each. evictd has some hundred calls under way
/// at a time, and of each that is given up something is left.
constexpr std::size_t most_queued = 4096;
/// Bytes handed to the kernel at a time.
constexpr std::size_t write_size = 64 << 10;
/// Read in one turn of the reactor at most: a large answer waits for others in between.
constexpr int reads_in_a_turn = 8;
constexpr std::size_t read_size = 32 << 10;

grpc::Status unavailable(std::string why) { return {grpc::StatusCode::UNAVAILABLE, std::move(why)}; }

nghttp2_nv field(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // nghttp2 copies them
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

/// At most eight digits and a unit (gRPC over HTTP/2: Timeout).
std::string timeout_field(std::chrono::milliseconds deadline) {
  constexpr std::int64_t most = 99'999'999;
  if (deadline.count() <= most) return fmt::format("{}m", deadline.count());
  return fmt::format("{}S", std::min<std::int64_t>(deadline.count() / 1000, most));
}

}  // namespace

/// What nghttp2 calls. It is within a call of ours then, and must not be called itself but for what only queues. A
/// call may be finished by any of them, and with it its exchange be gone.
struct Connection::Callbacks {
  static Connection& self(void* connection) { return *static_cast<Connection*>(connection); }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* connection) {
    auto& calls = self(connection).calls_;
    const auto call = calls.find(frame->hd.stream_id);
    if (call == calls.end()) return 0;
    const auto text = [](const std::uint8_t* bytes, std::size_t size) {
      return std::string_view(reinterpret_cast<const char*>(bytes), size);
    };
    call->second.exchange->status.add(text(name, name_size), text(value, value_size));
    return 0;
  }

  static int data(nghttp2_session* session, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                  std::size_t size, void* connection) {
    nghttp2_session_consume_connection(session, size);
    auto& calls = self(connection).calls_;
    const auto call = calls.find(stream);
    if (call == calls.end()) return 0;
    const auto exchange = call->second.exchange;
    const auto& messages = exchange->reader.messages;
    const auto added = exchange->reader.add({reinterpret_cast<const char*>(bytes), size});
    exchange->unread += size;
    if (!added) {
      self(connection).reset(stream, {grpc::StatusCode::RESOURCE_EXHAUSTED, added.error().message});
    } else if (exchange->kind == Exchange::Kind::Stream && !messages.empty()) {
      exchange->news.cancel();
    } else if (messages.size() > 1) {
      self(connection).reset(stream, {grpc::StatusCode::INTERNAL, "the server answers one question twice"});
    } else {
      // Of a message that is under way the rest must have room, however large it is.
      nghttp2_session_consume_stream(session, stream, std::exchange(exchange->unread, 0));
    }
    return 0;
  }

  /// A stream ends by both sides' word, or by a reset. What the server has ended by its own is finished already.
  static int closed(nghttp2_session*, std::int32_t stream, std::uint32_t error, void* connection) {
    self(connection).finish(stream, status_of_reset(error));
    return 0;
  }

  static int received(nghttp2_session*, const nghttp2_frame* frame, void* connection) {
    auto& here = self(connection);
    if (frame->hd.type == NGHTTP2_GOAWAY) here.stop_calling();
    const bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) here.server_ended(frame->hd.stream_id);
    return 0;
  }

  /// As for a request that was to go out behind the server's word that it goes.
  static int not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* connection) {
    if (frame->hd.type == NGHTTP2_HEADERS)
      self(connection).finish(frame->hd.stream_id, unavailable("the server closes the connection"));
    return 0;
  }

  static ssize_t message(nghttp2_session*, std::int32_t stream, std::uint8_t* bytes, std::size_t size,
                         std::uint32_t* flags, nghttp2_data_source*, void* connection) {
    auto& calls = self(connection).calls_;
    const auto found = calls.find(stream);
    if (found == calls.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    auto& [exchange, message, sent] = found->second;
    const auto part = std::string_view(message).substr(sent, size);
    std::memcpy(bytes, part.data(), part.size());
    sent += part.size();
    if (sent == message.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(part.size());
  }

  static nghttp2_session* make_session(Connection& connection) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_option* option = nullptr;
    nghttp2_session* session = nullptr;
    if (nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0) {
      nghttp2_session_callbacks_set_on_header_callback(callbacks, &header);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &data);
      nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &closed);
      nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &received);
      nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, &not_sent);
      nghttp2_option_set_no_auto_window_update(option, 1);
      nghttp2_session_client_new2(&session, callbacks, &connection, option);
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (session == nullptr) throw std::bad_alloc{};
    return session;
  }
};

void Connection::Freed::operator()(nghttp2_session* session) const { nghttp2_session_del(session); }

Result<std::shared_ptr<Connection>> Connection::to(const asio::any_io_executor& reactor, std::string_view path) {
  os::FileDescriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket) return fail(std::strerror(errno));
  const int error = os::connect_to(socket.get(), path);
  if (error == EAGAIN) return fail("the server takes no more connections");
  if (error != 0) return fail(std::strerror(error));
  return begin(reactor, std::move(socket));
}

std::shared_ptr<Connection> Connection::begin(const asio::any_io_executor& reactor, os::FileDescriptor socket) {
  auto connection = std::make_shared<Connection>(Private{}, reactor, std::move(socket));
  if (!connection->ended_) connection->wait_to_read();
  return connection;
}

Connection::Connection(Private, const asio::any_io_executor& reactor, os::FileDescriptor socket)
    : reactor_(reactor),
      socket_(reactor),
      session_(Callbacks::make_session(*this)),
      loss_(reactor, asio::steady_timer::time_point::max()) {
  boost::system::error_code error;
  socket_.assign(asio::local::stream_protocol{}, socket.get(), error);
  if (!error) socket.release();
  if (!error) socket_.non_blocking(true, error);
  ended_ = error.failed();  // the kernel has no room for it
  const std::array<nghttp2_settings_entry, 2> settings{
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window}}};
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0, connection_window);
}

Connection::~Connection() = default;

asio::awaitable<void> Connection::until_lost() {
  if (is_open()) co_await async::wait(loss_);
}

void Connection::send(std::string_view path, std::string_view message, std::chrono::milliseconds deadline,
                      const std::shared_ptr<Exchange>& exchange) {
  if (!is_open()) return exchange->end(unavailable("the server has closed the connection"));
  const auto timeout = timeout_field(deadline);
  const std::array fields{
      field(":method", "POST"), field(":scheme", "http"), field(":path", path),
      // Newer gRPC makes it from the socket's path, %-encoded, which Go's servers refuse (grpc #38142).
      field(":authority", "localhost"), field("te", "trailers"), field("content-type", "application/grpc"),
      field("user-agent", "evictd/" EVICTD_VERSION), field("grpc-timeout", timeout)};
  const auto count = fields.size() - (deadline.count() == 0 ? 1 : 0);
  const nghttp2_data_provider body{.source = {}, .read_callback = &Callbacks::message};
  const auto stream = nghttp2_submit_request(session_.get(), nullptr, fields.data(), count, &body, nullptr);
  if (stream < 0) {
    stop_calling();  // it has no more numbers for calls
    return exchange->end(unavailable(nghttp2_strerror(stream)));
  }
  calls_.emplace(stream, Call{.exchange = exchange, .message = framed(message)});
  write();
}

void Connection::cancel(const std::shared_ptr<Exchange>& exchange) {
  const auto stream = stream_of(*exchange);
  if (!stream) return exchange->end(grpc::Status::CANCELLED);
  reset(*stream, grpc::Status::CANCELLED);
  write();
}

void Connection::make_room(const std::shared_ptr<Exchange>& exchange) {
  const auto size = std::exchange(exchange->unread, 0);
  const auto stream = stream_of(*exchange);
  if (!stream || size == 0) return;
  nghttp2_session_consume_stream(session_.get(), *stream, size);
  write();
}

void Connection::close() { lose(grpc::Status::CANCELLED); }

std::optional<std::int32_t> Connection::stream_of(const Exchange& exchange) const {
  const auto call =
      std::ranges::find_if(calls_, [&](const auto& entry) { return entry.second.exchange.get() == &exchange; });
  return call == calls_.end() ? std::nullopt : std::optional{call->first};
}

void Connection::finish(std::int32_t stream, grpc::Status status) {
  const auto call = calls_.extract(stream);
  if (!call.empty()) call.mapped().exchange->end(std::move(status));
}

void Connection::reset(std::int32_t stream, grpc::Status status) {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  finish(stream, std::move(status));
}

/// On the server's last word of a call. It may not have waited for ours.
void Connection::server_ended(std::int32_t stream) {
  const auto found = calls_.find(stream);
  if (found == calls_.end()) return;
  const auto& [exchange, message, sent] = found->second;
  auto status = exchange->status.status();
  if (status.ok() && !exchange->reader.is_between_messages())
    status = {grpc::StatusCode::INTERNAL, "the server ended the call within a message"};
  if (sent < message.size())
    reset(stream, std::move(status));
  else
    finish(stream, std::move(status));
}

void Connection::stop_calling() {
  is_going_ = true;
  loss_.cancel();
}

void Connection::lose(const grpc::Status& status) {
  if (std::exchange(ended_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  for (const auto& [stream, call] : std::exchange(calls_, {})) call.exchange->end(status);
  loss_.cancel();
}

void Connection::wait_to_read() {
  socket_.async_wait(asio::socket_base::wait_read, [self = shared_from_this()](boost::system::error_code error) {
    if (error) return;
    self->read();
    if (!self->ended_) self->wait_to_read();
  });
}

void Connection::read() {
  receive();
  write();
}

void Connection::receive() {
  std::array<std::uint8_t, read_size> bytes;
  for (int i = 0; i < reads_in_a_turn && !ended_; ++i) {
    boost::system::error_code error;
    const auto size = socket_.read_some(asio::buffer(bytes), error);
    if (error == asio::error::would_block) return;
    if (error == asio::error::eof) return lose(unavailable("the server has closed the connection"));
    if (error) return lose(unavailable(error.message()));
    const auto taken = nghttp2_session_mem_recv(session_.get(), bytes.data(), size);
    if (taken < 0)
      return lose(
          unavailable(fmt::format("the server does not speak HTTP/2: {}", nghttp2_strerror(static_cast<int>(taken)))));
  }
}

void Connection::wait_to_write() {
  if (std::exchange(waits_to_write_, true)) return;
  socket_.async_wait(asio::socket_base::wait_write, [self = shared_from_this()](boost::system::error_code error) {
    self->waits_to_write_ = false;
    if (!error) self->write();
  });
}

void Connection::write() {
  while (!ended_ && can_write_ && !waits_to_write_ && fill()) {
    boost::system::error_code error;
    out_sent_ += socket_.write_some(asio::buffer(std::string_view(out_).substr(out_sent_)), error);
    if (error == asio::error::would_block) {
      wait_to_write();
    } else if (error == asio::error::broken_pipe || error == asio::error::connection_reset) {
      // What it has answered before it went is read still, up to its end.
      can_write_ = false;
      stop_calling();
    } else if (error) {
      lose(unavailable(error.message()));
    }
  }
  if (!ended_ && nghttp2_session_get_outbound_queue_size(session_.get()) > most_queued)
    return lose(unavailable("the server does not read what it is sent"));
  // The server has said that it goes, and every call has ended; or nghttp2 has told it why there is no going on.
  if (!ended_ && can_write_ && !waits_to_write_ && nghttp2_session_want_read(session_.get()) == 0)
    lose(unavailable(is_going_ ? "the server closes the connection" : "the server breaks the rules of HTTP/2"));
}

/// True if there is something to write.
bool Connection::fill() {
  if (out_sent_ < out_.size()) return true;
  out_.clear();
  out_sent_ = 0;
  while (out_.size() < write_size) {
    const std::uint8_t* bytes = nullptr;
    const auto size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size <= 0) break;
    out_.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
  return !out_.empty();
}

}  // namespace evictd::rpc
