#include "kube/transport.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <cstdint>
#include <tuple>
#include <utility>

#include "async/awaited.hpp"
#include "async/sleep.hpp"

namespace asio = boost::asio;

namespace evictd::kube {
namespace {

namespace beast = boost::beast;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto token = asio::as_tuple(asio::use_awaitable);

bool is_address(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

std::string reason(const error_code& error) {
  if (error == beast::error::timeout) return "no answer in time";
  if (error == asio::error::operation_aborted) return "stopped";
  if (error == asio::error::eof || error == ssl::error::stream_truncated || error == asio::error::connection_reset ||
      error == asio::error::broken_pipe)
    return "the server broke the connection";
  // The one alert that tells an operator what to do. In TLS 1.3 it comes after the handshake.
  if (error.category() == asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
    return "the server demands a client certificate";
  return error.message();
}

/// Addresses of a name, and the connection to one of them.
class Dial {
 public:
  Dial(asio::any_io_executor reactor, const Server& server, NameLookups lookups)
      : reactor_{std::move(reactor)}, server_{server}, lookups_{std::move(lookups)} {}

  asio::awaitable<Result<void>> connect(beast::tcp_stream& stream, core::Instant end) {
    const auto endpoints = co_await resolve(end);
    if (!endpoints) co_return std::unexpected(endpoints.error());
    error_code error = asio::error::host_not_found;
    for (std::size_t i = 0; i < endpoints->size() && !stopped_; ++i) {
      // A dead address must not use up the time of those after it.
      const auto now = std::chrono::steady_clock::now();
      const auto share = (end - now) / static_cast<core::Duration::rep>(endpoints->size() - i);
      stream.expires_at(now + share);
      std::tie(error) = co_await stream.async_connect((*endpoints)[i], token);
      if (!error) {
        tune(stream.socket());
        co_return Result<void>{};
      }
      stream.close();
    }
    co_return fail("cannot connect: " + reason(stopped_ ? asio::error::operation_aborted : error));
  }

  void stop() {
    stopped_ = true;
    if (lookup_) lookup_->abandon();
  }

 private:
  Result<std::unique_ptr<async::SideThread>> begin_lookup() {
    return lookups_.begin(reactor_, server_, [awaited = lookup_](Result<Endpoints>&& endpoints) {
      awaited->deliver(std::move(endpoints));
    });
  }

  asio::awaitable<Result<Endpoints>> resolve(core::Instant end) {
    constexpr auto pause = 50ms;
    error_code error;
    const auto address = asio::ip::make_address(server_.host, error);
    const auto port = static_cast<std::uint16_t>(std::stoi(server_.port));
    if (!error) co_return Endpoints{tcp::endpoint{address, port}};

    lookup_ = std::make_shared<async::Awaited<Result<Endpoints>>>(reactor_, end);
    auto lookup = begin_lookup();
    // Those that are under way already end, if only because the system's resolver gives up.
    while (!lookup && !stopped_ && std::chrono::steady_clock::now() + pause < end) {
      co_await async::sleep(pause);
      lookup = begin_lookup();
    }
    if (!lookup) co_return std::unexpected(lookup.error());
    auto found = co_await async::Awaited<Result<Endpoints>>::wait(lookup_);
    if (found) co_return *std::move(found);
    if (stopped_) co_return fail("stopped");
    co_return fail("cannot be resolved: no answer in time");
  }

  /// A watch is silent for minutes: the kernel finds out whether the other side is still there (after some 60 s), and
  /// keeps firewalls from forgetting the connection.
  static void tune(tcp::socket& socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    const auto set = [&](int name, int value) {
      ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
    };
    set(TCP_KEEPIDLE, 30);
    set(TCP_KEEPINTVL, 10);
    set(TCP_KEEPCNT, 3);
    set(TCP_USER_TIMEOUT, 60'000);  // ms; the same for what was written and never acknowledged
  }

  asio::any_io_executor reactor_;
  Server server_;
  NameLookups lookups_;
  std::shared_ptr<async::Awaited<Result<Endpoints>>> lookup_;
  bool stopped_ = false;
};

/// What both kinds do alike. `Stream`: what bytes go through, on top of a tcp_stream.
template <class Stream>
class StreamTransport : public Transport {
 public:
  asio::awaitable<Result<void>> write(std::string_view bytes, core::Instant end) override {
    socket().expires_at(end);
    const auto [error, count] = co_await asio::async_write(stream_, asio::buffer(bytes), token);
    if (error) co_return failed(error);
    co_return Result<void>{};
  }

  asio::awaitable<Result<std::size_t>> read_some(std::span<char> buffer, core::Instant end) override {
    socket().expires_at(end);
    const auto [error, count] = co_await stream_.async_read_some(asio::buffer(buffer.data(), buffer.size()), token);
    if (error == asio::error::eof) co_return std::size_t{0};
    if (error) co_return failed(error);
    co_return count;
  }

  bool is_idle() override {
    if (!socket().socket().is_open()) return false;
    char byte = 0;
    const auto count = ::recv(socket().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  void close() override {
    closed_ = true;
    dial_.stop();
    socket().close();
  }

 protected:
  template <class... Arguments>
  StreamTransport(const asio::any_io_executor& reactor, const Server& server, NameLookups lookups,
                  Arguments&... arguments)
      : dial_{reactor, server, std::move(lookups)}, stream_{reactor, arguments...} {}

  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }
  asio::awaitable<Result<void>> connect(core::Instant end) { return dial_.connect(socket(), end); }
  std::unexpected<Error> failed(const error_code& error) {
    socket().close();
    return fail(closed_ ? "stopped" : reason(error));  // a closed socket fails in many ways
  }

  Dial dial_;
  Stream stream_;
  bool closed_ = false;
};

class PlainTransport final : public StreamTransport<beast::tcp_stream> {
 public:
  PlainTransport(const asio::any_io_executor& reactor, const Server& server, NameLookups lookups)
      : StreamTransport{reactor, server, std::move(lookups)} {}

  asio::awaitable<Result<void>> open(core::Instant end) override { return connect(end); }
};

class TlsTransport final : public StreamTransport<ssl::stream<beast::tcp_stream>> {
 public:
  TlsTransport(const asio::any_io_executor& reactor, const Server& server, NameLookups lookups, std::string name,
               IdentityPtr identity)
      : StreamTransport{reactor, server, std::move(lookups), *identity->tls},
        name_{std::move(name)},
        identity_{std::move(identity)} {}

  asio::awaitable<Result<void>> open(core::Instant end) override {
    if (const auto connected = co_await connect(end); !connected) co_return connected;
    if (!expect_name()) co_return fail(fmt::format("OpenSSL does not take the server name \"{}\"", name_));
    socket().expires_at(end);
    const auto [error] = co_await stream_.async_handshake(ssl::stream_base::client, token);
    if (!error) co_return Result<void>{};
    socket().close();
    co_return fail(refusal(error));
  }

 private:
  /// Sets what the certificate must be made out to, and tells the server whom we want (SNI knows no addresses, RFC
  /// 6066).
  bool expect_name() {
    auto* handle = stream_.native_handle();
    if (is_address(name_)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), name_.c_str()) == 1;
    SSL_set_hostflags(handle, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(handle, name_.c_str()) == 1 && SSL_set_tlsext_host_name(handle, name_.c_str()) == 1;
  }

  std::string refusal(const error_code& error) {
    switch (const auto verdict = SSL_get_verify_result(stream_.native_handle())) {
      case X509_V_OK: return closed_ ? "stopped" : "TLS handshake: " + reason(error);
      case X509_V_ERR_HOSTNAME_MISMATCH:
      case X509_V_ERR_IP_ADDRESS_MISMATCH: return "certificate is not valid for " + name_;
      case X509_V_ERR_CERT_HAS_EXPIRED: return "certificate has expired";
      case X509_V_ERR_CERT_NOT_YET_VALID: return "certificate is not valid yet: is this machine's clock right?";
      case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
      case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return fmt::format("certificate is signed by no authority that was given ({})",
                           X509_verify_cert_error_string(verdict));
      default: return fmt::format("certificate is not valid: {}", X509_verify_cert_error_string(verdict));
    }
  }

  std::string name_;
  IdentityPtr identity_;  // the stream uses its context
};

}  // namespace

std::shared_ptr<Transport> make_transport(asio::any_io_executor reactor, NameLookups lookups, Server server,
                                          std::string tls_server_name, IdentityPtr identity) {
  if (!identity->tls) return std::make_shared<PlainTransport>(reactor, server, std::move(lookups));
  if (tls_server_name.empty()) tls_server_name = server.host;
  return std::make_shared<TlsTransport>(reactor, server, std::move(lookups), std::move(tls_server_name),
                                        std::move(identity));
}

}  // namespace evictd::kube
