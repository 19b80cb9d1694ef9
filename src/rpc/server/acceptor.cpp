#include "rpc/server/acceptor.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "os/log.hpp"
#include "rpc/server/open_socket.hpp"
#include "rpc/server/peers.hpp"
#include "rpc/server/stalled_clients.hpp"

namespace asio = boost::asio;

namespace evictd::rpc {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Descriptor = asio::posix::stream_descriptor;

constexpr auto nothrow = asio::as_tuple(asio::use_awaitable);

std::string_view text_of(Greeting greeting) {
  // A record of type 22, of any version that TLS ever had.
  return greeting == Greeting::Tls ? "\x16\x03" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
}

enum class Peek : std::uint8_t { Nothing, Beginning, Greeting, Nonsense };

/// Looks at what came, and leaves it there for gRPC.
Peek peek(int connection, std::string_view greeting) {
  std::array<char, 32> buffer{};
  const auto size = ::recv(connection, buffer.data(), greeting.size(), MSG_PEEK | MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR ? Peek::Nothing : Peek::Nonsense;
  const std::string_view said(buffer.data(), static_cast<std::size_t>(size));
  if (said.empty() || !greeting.starts_with(said)) return Peek::Nonsense;  // empty: it hung up
  return said == greeting ? Peek::Greeting : Peek::Beginning;
}

/// A connection that has not greeted yet.
struct Handshake {
  explicit Handshake(asio::io_context& context) : connection(context), deadline(context), pause(context) {}
  Descriptor connection;
  asio::steady_timer deadline;
  asio::steady_timer pause;
};

using HandshakePtr = std::shared_ptr<Handshake>;

/// One listener with its newcomers, and a count of those inside. All on the acceptor's thread.
class OpenListener {
 public:
  OpenListener(asio::io_context& context, Listener listener, const AcceptorLimits& limits)
      : context_(context),
        socket_(context, listener.socket.release()),
        rest_(context),
        next_look_(context),
        listener_(std::move(listener)),
        limits_(limits),
        stalled_(context.get_executor(), limits.unread, [this](int connection) { tell_of_cut_off(connection); }) {}

  void open();

 private:
  asio::awaitable<void> accept();
  [[nodiscard]] bool accept_some();
  [[nodiscard]] bool receive(os::FileDescriptor connection);
  asio::awaitable<void> await_greeting(HandshakePtr handshake);
  void turn_away(HandshakePtr handshake);
  void let_in(os::FileDescriptor connection);
  void look_after_later();
  void look_for_stalled();
  void tell_of_cut_off(int connection);
  [[nodiscard]] bool is_full();
  void warn(const std::string& what);

  asio::io_context& context_;
  Descriptor socket_;
  asio::steady_timer rest_;
  asio::steady_timer next_look_;
  bool looks_after_ = false;
  Listener listener_;
  const AcceptorLimits& limits_;
  StalledClients stalled_;
  std::list<HandshakePtr> handshakes_;  // the oldest first
  OpenSockets inside_;
  Clock::time_point looked_{};
  std::optional<Clock::time_point> warned_;
};

/// Whatever was thrown, most likely for want of memory: a listener that is not served would look well from outside.
void OpenListener::open() {
  async::spawn_contained(context_.get_executor(), accept(), [this](const std::string& reason) {
    warn("connections could not be taken for a moment: " + reason);
    rest_.expires_after(100ms);
    rest_.async_wait([this](boost::system::error_code error) {
      if (!error) open();
    });
  });
}

asio::awaitable<void> OpenListener::accept() {
  for (;;) {
    const auto [error] = co_await socket_.async_wait(Descriptor::wait_read, nothrow);
    if (error) co_return;
    if (accept_some()) continue;
    // No descriptor is left for the next one, which would wake us again and again.
    while (!handshakes_.empty()) turn_away(handshakes_.front());
    rest_.expires_after(100ms);
    co_await async::wait(rest_);
  }
}

/// False where the process, or the machine, has no room for another connection. Not all at once: those who greeted
/// meanwhile come between.
bool OpenListener::accept_some() {
  for (int count = 0; count < 64; ++count) {
    const int number = ::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (number >= 0) {
      if (!receive(os::FileDescriptor(number))) return false;
      continue;
    }
    if (errno == EAGAIN) return true;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return false;
    // Else it was the connection's own trouble: it was gone before it was taken.
  }
  return true;
}

/// False where epoll has no room for it: it is closed.
bool OpenListener::receive(os::FileDescriptor connection) {
  if (handshakes_.size() >= limits_.silent) turn_away(handshakes_.front());
  const auto handshake = std::make_shared<Handshake>(context_);
  boost::system::error_code error;
  handshake->connection.assign(connection.get(), error);
  if (error) return false;
  connection.release();
  handshakes_.push_back(handshake);
  handshake->deadline.expires_after(limits_.patience);
  handshake->deadline.async_wait([this, weak = std::weak_ptr(handshake)](boost::system::error_code error) {
    if (const auto late = weak.lock(); late && !error) turn_away(late);
  });
  async::spawn_contained(context_.get_executor(), await_greeting(handshake),
                         [this, handshake](const std::string& reason) {
                           turn_away(handshake);
                           warn("a connection was dropped: " + reason);
                         });
  return true;
}

asio::awaitable<void> OpenListener::await_greeting(HandshakePtr handshake) {
  for (;;) {
    const auto [error] = co_await handshake->connection.async_wait(Descriptor::wait_read, nothrow);
    if (error || !handshake->connection.is_open()) co_return;
    const auto peeked = peek(handshake->connection.native_handle(), text_of(listener_.greeting));
    if (peeked == Peek::Nonsense) {
      turn_away(handshake);
      co_return;
    }
    if (peeked == Peek::Greeting) {
      handshake->deadline.cancel();
      handshakes_.remove(handshake);
      let_in(os::FileDescriptor(handshake->connection.release()));
      co_return;
    }
    // The socket stays readable with a half of the greeting in it: there is nothing to wait for but time.
    handshake->pause.expires_after(20ms);
    co_await async::wait(handshake->pause);
    if (!handshake->connection.is_open()) co_return;
  }
}

/// By value: it may be the list's own.
void OpenListener::turn_away(HandshakePtr handshake) {
  handshake->deadline.cancel();
  handshake->pause.cancel();
  boost::system::error_code ignored;
  handshake->connection.close(ignored);  // ends `await_greeting`
  handshakes_.remove(handshake);
}

void OpenListener::let_in(os::FileDescriptor connection) {
  if (is_full()) return warn(fmt::format("{} connections are open: no more are taken", inside_.at_most()));
  inside_.add(connection.get());
  listener_.let_in(std::move(connection));
  if (listener_.look_after && !looks_after_) look_after_later();
}

void OpenListener::look_after_later() {
  next_look_.expires_after(limits_.between_looks);
  next_look_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    looks_after_ = false;
    try {
      look_for_stalled();
      if (listener_.look_after()) look_after_later();
    } catch (const std::exception& exception) {
      warn(fmt::format("connections are not looked after until the next one comes: {}", exception.what()));
    }
  });
  looks_after_ = true;
}

void OpenListener::look_for_stalled() {
  for (const auto& connection : inside_.open()) stalled_.look_at(connection);
}

void OpenListener::tell_of_cut_off(int connection) {
  const auto peer = peer_of(connection);
  warn(fmt::format("a client{} left unread what it asked for, for {} ms while its socket was full, and is cut off",
                   peer ? fmt::format(" ({})", describe_peer(*peer, {})) : "", limits_.unread.count()));
}

/// Once a minute: a client that connects again and again could fill the log.
void OpenListener::warn(const std::string& what) {
  const auto now = Clock::now();
  if (warned_ && now - *warned_ <= 1min) return;
  warned_ = now;
  os::log_warning("{}: {}", listener_.name, what);
}

/// Not looked at too often.
bool OpenListener::is_full() {
  if (inside_.at_most() < limits_.connections) return false;
  const auto now = Clock::now();
  if (now - looked_ < 50ms) return true;
  looked_ = now;
  return inside_.open().size() >= limits_.connections;
}

}  // namespace

struct Acceptor::Parts {
  AcceptorLimits limits;
  asio::io_context context{1};
  std::list<OpenListener> open_listeners;
  std::thread thread;
};

Acceptor::Acceptor(std::vector<Listener> listeners, AcceptorLimits limits) : parts_(std::make_unique<Parts>()) {
  parts_->limits = std::move(limits);
  for (auto& listener : listeners)
    parts_->open_listeners.emplace_back(parts_->context, std::move(listener), parts_->limits).open();
  parts_->thread = std::thread([&context = parts_->context] { context.run(); });
}

Acceptor::~Acceptor() {
  parts_->context.stop();
  parts_->thread.join();
}

}  // namespace evictd::rpc
