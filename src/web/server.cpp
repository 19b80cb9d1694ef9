#include "web/server.hpp"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "web/session.hpp"

namespace asio = boost::asio;

namespace evictd::web {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

/// Out of descriptors or memory: clients that want to connect wait in the kernel meanwhile.
constexpr std::chrono::milliseconds after_failed_accept{100};

}  // namespace

/// Takes connections, and owns what they share.
class Server::Listener : public std::enable_shared_from_this<Listener> {
 public:
  Listener(const asio::any_io_executor& reactor, ServerOptions options, Content content,
           OnClientFailure on_client_failure)
      : acceptor{reactor},
        pause{reactor},
        options{std::move(options)},
        sessions{std::make_shared<Sessions>(std::move(content), std::move(on_client_failure))} {
    sessions->limits = {.idle = this->options.idle_timeout,
                        .request = this->options.request_timeout,
                        .write = this->options.write_timeout,
                        .linger = this->options.linger_timeout};
  }

  Result<void> open() {
    error_code error;
    const auto address = asio::ip::make_address(options.address, error);
    if (error) return fail(fmt::format("\"{}\" is no IP address", options.address));
    const tcp::endpoint endpoint{address, options.port};
    acceptor.open(endpoint.protocol(), error);
    // Connections of an evictd that ended linger in the kernel for a minute.
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) return fail(fmt::format("{}:{}: {}", options.address, options.port, error.message()));
    return {};
  }

  /// Whatever is thrown, most likely for want of memory, the next client is let in again a little later.
  static void begin(const std::shared_ptr<Listener>& self) {
    async::spawn_contained(self->acceptor.get_executor(), accept(self), [self](const std::string& reason) {
      self->sessions->on_client_failure(reason);
      self->pause.expires_after(after_failed_accept);
      self->pause.async_wait([self](error_code error) {
        if (!error) begin(self);
      });
    });
  }

  static asio::awaitable<void> accept(std::shared_ptr<Listener> self) {
    while (self->acceptor.is_open()) {
      auto [error, socket] = co_await self->acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (!self->acceptor.is_open()) co_return;
      if (error) {
        self->pause.expires_after(after_failed_accept);
        co_await async::wait(self->pause);
        continue;
      }
      self->sessions->make_room(self->options.connections);
      begin_session(self->sessions, std::move(socket));
    }
  }

  tcp::acceptor acceptor;
  asio::steady_timer pause;
  ServerOptions options;
  std::shared_ptr<Sessions> sessions;
};

Server::Server(asio::any_io_executor reactor, ServerOptions options, Content content, OnClientFailure on_client_failure)
    : listener_{
          std::make_shared<Listener>(reactor, std::move(options), std::move(content), std::move(on_client_failure))} {}

Server::~Server() {
  error_code ignored;
  listener_->acceptor.close(ignored);
  listener_->pause.cancel();
  listener_->sessions->close_all();
}

Result<void> Server::start() {
  if (auto opened = listener_->open(); !opened) return opened;
  Listener::begin(listener_);
  return {};
}

std::uint16_t Server::port() const {
  error_code error;
  const auto endpoint = listener_->acceptor.local_endpoint(error);
  return error ? std::uint16_t{0} : endpoint.port();
}

std::size_t Server::connections() const { return listener_->sessions->size(); }

}  // namespace evictd::web
