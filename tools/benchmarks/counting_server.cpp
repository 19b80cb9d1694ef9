#include "benchmarks/counting_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

namespace bench {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

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

asio::awaitable<bool> write(tcp::socket& socket, std::string text) {
  const auto [error, written] = co_await asio::async_write(socket, asio::buffer(text), token);
  co_return !error;
}

int sum(const std::vector<int>& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0); }
int greatest(const std::vector<int>& seconds) { return seconds.empty() ? 0 : std::ranges::max(seconds); }

}  // namespace

int ClusterPhase::count(Call call) const { return sum(requests.at(static_cast<std::size_t>(call))); }

int ClusterPhase::all_requests() const {
  return std::accumulate(requests.begin(), requests.end(), 0,
                         [](int before, const auto& seconds) { return before + sum(seconds); });
}

int ClusterPhase::peak(Call call) const { return greatest(requests.at(static_cast<std::size_t>(call))); }

int ClusterPhase::peak() const {
  std::vector<int> together(turned_away.size());
  for (const auto& seconds : requests) std::ranges::transform(together, seconds, together.begin(), std::plus{});
  return greatest(together);
}

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

CountingServer::CountingServer(asio::io_context& reactor, int nodes, int pods, std::chrono::milliseconds bookmarks)
    : acceptor_{reactor, {asio::ip::address_v4::loopback(), 0}},
      objects_{nodes, pods},
      bookmarks_{bookmarks},
      watches_(static_cast<std::size_t>(nodes)) {
  asio::co_spawn(reactor, accept(), asio::detached);
}

void CountingServer::count(const ClusterObjects::Handled& handled, std::size_t in, std::size_t out) {
  ++now_of(phase_.requests.at(static_cast<std::size_t>(handled.call)));
  phase_.most_of_a_node = std::max(phase_.most_of_a_node, ++requests_of_[handled.node]);
  phase_.bytes_in += in;
  phase_.bytes_out += out;
}

int& CountingServer::now_of(std::vector<int>& seconds) const {
  const auto second = static_cast<std::size_t>((Clock::now() - phase_began_) / 1s);
  if (seconds.size() <= second) seconds.resize(second + 1);
  return seconds[second];
}

asio::awaitable<void> CountingServer::accept() {
  for (;;) {
    auto [error, socket] = co_await acceptor_.async_accept(token);
    if (error) co_return;
    auto connection = std::make_shared<Connection>(std::move(socket));
    ++(away_ ? now_of(phase_.turned_away) : phase_.connections);
    if (away_) {
      connection->cut();
      continue;
    }
    boost::system::error_code ignored;
    connection->socket.set_option(tcp::no_delay(true), ignored);
    connections_.insert(connection);
    asio::co_spawn(acceptor_.get_executor(), serve(connection), asio::detached);
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
    if (handled.call == Call::Watch && handled.status == 200)
      open = co_await watch(connection, handled, in, std::chrono::seconds{number_after(target, "timeoutSeconds=")});
    else
      open = co_await answer(connection, handled, in);
  }
  connection->cut();
  connections_.erase(connection);
}

asio::awaitable<bool> CountingServer::answer(ConnectionPtr connection, ClusterObjects::Handled handled,
                                             std::size_t in) {
  const auto text = head(handled.status, fmt::format("Content-Length: {}", handled.body.size())) + handled.body;
  count(handled, in, text.size());
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

asio::awaitable<bool> CountingServer::watch(ConnectionPtr connection, ClusterObjects::Handled handled, std::size_t in,
                                            std::chrono::seconds length) {
  watches_.at(static_cast<std::size_t>(handled.node)) = connection;
  connection->watches = true;
  const auto begin = head(200, "Transfer-Encoding: chunked");
  count(handled, in, begin.size());
  if (!co_await write(connection->socket, begin)) co_return false;
  const auto end = Clock::now() + length;
  auto bookmark = Clock::now() + bookmarks_;
  while (!connection->ends && Clock::now() < end) {
    if (!connection->pending.empty()) {
      const auto text = chunk(std::exchange(connection->pending, {}));
      phase_.changes += std::exchange(connection->changes, 0);
      phase_.bytes_out += text.size();
      if (!co_await write(connection->socket, text)) co_return false;
    } else if (Clock::now() >= bookmark) {
      bookmark += bookmarks_;
      const auto text = chunk(objects_.bookmark());
      ++phase_.bookmarks;
      phase_.bytes_out += text.size();
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
  away_ = true;
  for (const auto& connection : connections_) connection->cut();
}

void CountingServer::end_watches() {
  for (const auto& weak : watches_)
    if (const auto connection = weak.lock()) {
      connection->ends = true;
      connection->wake.cancel();
    }
}

int CountingServer::watches() const {
  return static_cast<int>(std::ranges::count_if(watches_, [](const auto& weak) {
    const auto connection = weak.lock();
    return connection && connection->watches && !connection->ends && connection->socket.is_open();
  }));
}

void CountingServer::begin_phase(std::string name) {
  phase_ = {.name = std::move(name)};
  phase_began_ = Clock::now();
  requests_of_.clear();
}

const ClusterPhase& CountingServer::end_phase() {
  phase_.seconds = std::chrono::duration<double>(Clock::now() - phase_began_).count();
  const auto all = static_cast<std::size_t>(std::max(1.0, std::ceil(phase_.seconds)));
  for (auto& seconds : phase_.requests) seconds.resize(all);
  phase_.turned_away.resize(all);
  return phase_;
}

}  // namespace bench
