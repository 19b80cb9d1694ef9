#include "benchmarks/counting_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <string_view>
#include <utility>

namespace bench {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

/// In as many bytes as a real server's.
std::string head(int status, std::string_view body_header) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nAudit-Id: 01234567-89ab-cdef-0123-456789abcdef\r\nCache-Control: no-cache, private\r\n"
      "Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 01234567-89ab-cdef-0123-456789abcdef\r\n"
      "X-Kubernetes-Pf-Prioritylevel-Uid: 01234567-89ab-cdef-0123-456789abcdef\r\n"
      "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n{}\r\n\r\n",
      status, status < 300 ? "OK" : "Refused", body_header);
}

std::string chunk(std::string_view text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); }

std::chrono::seconds asked_length(std::string_view target) {
  constexpr std::string_view parameter = "timeoutSeconds=";
  int seconds = 60;
  if (const auto at = target.find(parameter); at != std::string_view::npos)
    std::from_chars(target.data() + at + parameter.size(), target.data() + target.size(), seconds);
  return std::chrono::seconds{seconds};
}

asio::awaitable<bool> write(tcp::socket& socket, std::string text) {
  const auto [error, written] = co_await asio::async_write(socket, asio::buffer(text), token);
  co_return !error;
}

/// Runs it on the server's thread, and waits for it.
auto on_thread_of(asio::io_context& context, auto work) {
  return asio::post(context, asio::use_future(std::move(work))).get();
}

}  // namespace

struct CountingServer::Connection {
  explicit Connection(tcp::socket taken) : socket{std::move(taken)}, wake{socket.get_executor()} {}

  /// With a reset: thousands of closed connections that linger would use up the machine's ports.
  void cut() {
    boost::system::error_code ignored;
    socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
    wake.cancel();
  }

  tcp::socket socket;
  asio::steady_timer wake;  // of its watch
  std::string pending{};    // what the watch has to tell
  int changes = 0;          // in it
  bool watches = false;
  bool ends = false;  // the watch
};
CountingServer::CountingServer(int nodes, int pods, std::chrono::milliseconds bookmarks)
    : objects_{nodes, pods}, bookmarks_{bookmarks}, watches_(static_cast<std::size_t>(nodes)) {
  asio::co_spawn(context_, accept(), asio::detached);
  thread_ = std::thread{[this] { context_.run(); }};
}

CountingServer::~CountingServer() {
  context_.stop();
  thread_.join();
}

void CountingServer::count(Crossing crossing) {
  crossing.time = Clock::now();
  crossings_.push_back(crossing);
}

asio::awaitable<void> CountingServer::accept() {
  for (;;) {
    auto [error, socket] = co_await acceptor_.async_accept(token);
    if (error) co_return;
    auto connection = std::make_shared<Connection>(std::move(socket));
    count({.what = away_ ? Crossing::What::TurnedAway : Crossing::What::Connection});
    if (away_) {
      connection->cut();
      continue;
    }
    boost::system::error_code ignored;
    connection->socket.set_option(tcp::no_delay(true), ignored);
    connections_.insert(connection);
    asio::co_spawn(context_, serve(connection), asio::detached);
  }
}

asio::awaitable<void> CountingServer::serve(ConnectionPtr connection) {
  beast::flat_buffer buffer;
  for (bool open = true; open;) {
    http::request<http::string_body> request;
    const auto [error, in] = co_await http::async_read(connection->socket, buffer, request, token);
    if (error) break;
    const std::string target{request.target().data(), request.target().size()};
    auto handled =
        objects_.handle({request.method_string().data(), request.method_string().size()}, target, request.body());
    Crossing crossing{.call = handled.call, .node = handled.node, .in = static_cast<std::uint32_t>(in)};
    if (handled.call == Call::Watch && handled.status == 200)
      open = co_await watch(connection, crossing, asked_length(target));
    else
      open = co_await answer(connection, crossing, handled);
  }
  connection->cut();
  connections_.erase(connection);
}

asio::awaitable<bool> CountingServer::answer(ConnectionPtr connection, Crossing crossing,
                                             ClusterObjects::Handled handled) {
  const auto text = head(handled.status, fmt::format("Content-Length: {}", handled.body.size())) + handled.body;
  crossing.out = static_cast<std::uint32_t>(text.size());
  count(crossing);
  if (!handled.change.empty()) tell(handled.node, handled.change);
  co_return co_await write(connection->socket, text);
}

void CountingServer::tell(int node, const std::string& change) {
  const auto watching = watches_.at(static_cast<std::size_t>(node)).lock();
  if (!watching) return;
  watching->pending += change;
  ++watching->changes;
  watching->wake.cancel();
}

asio::awaitable<bool> CountingServer::watch(ConnectionPtr connection, Crossing crossing, std::chrono::seconds length) {
  watches_.at(static_cast<std::size_t>(crossing.node)) = connection;
  connection->watches = true;
  const auto begin = head(200, "Transfer-Encoding: chunked");
  crossing.out = static_cast<std::uint32_t>(begin.size());
  count(crossing);
  if (!co_await write(connection->socket, begin)) co_return false;
  const auto end = Clock::now() + length;
  auto bookmark = Clock::now() + bookmarks_;
  while (!connection->ends && Clock::now() < end) {
    if (!connection->pending.empty()) {
      const auto text = chunk(std::exchange(connection->pending, {}));
      for (int left = std::exchange(connection->changes, 0); left > 0; --left)
        count({.what = Crossing::What::Change, .out = left == 1 ? static_cast<std::uint32_t>(text.size()) : 0});
      if (!co_await write(connection->socket, text)) co_return false;
    } else if (Clock::now() >= bookmark) {
      bookmark += bookmarks_;
      const auto text = chunk(objects_.bookmark());
      count({.what = Crossing::What::Bookmark, .out = static_cast<std::uint32_t>(text.size())});
      if (!co_await write(connection->socket, text)) co_return false;
    } else {
      connection->wake.expires_at(std::min(end, bookmark));
      co_await connection->wake.async_wait(token);
      if (!connection->socket.is_open()) co_return false;
    }
  }
  connection->watches = false;
  co_return co_await write(connection->socket, "0\r\n\r\n");
}

void CountingServer::turn_away() {
  on_thread_of(context_, [this] {
    away_ = true;
    for (const auto& connection : connections_) connection->cut();
  });
}

void CountingServer::take_again() {
  on_thread_of(context_, [this] { away_ = false; });
}

void CountingServer::end_watches() {
  on_thread_of(context_, [this] {
    for (const auto& weak : watches_)
      if (const auto connection = weak.lock()) {
        connection->ends = true;
        connection->wake.cancel();
      }
  });
}

int CountingServer::watches() {
  return on_thread_of(context_, [this] {
    return static_cast<int>(std::ranges::count_if(watches_, [](const auto& weak) {
      const auto connection = weak.lock();
      return connection && connection->watches && !connection->ends && connection->socket.is_open();
    }));
  });
}

ClusterObjects CountingServer::objects() {
  return on_thread_of(context_, [this] { return objects_; });
}

std::vector<Crossing> CountingServer::crossings() {
  return on_thread_of(context_, [this] { return crossings_; });
}

}  // namespace bench
