#include "kube/api_server.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cctype>
#include <chrono>
#include <set>
#include <thread>
#include <variant>

namespace evictd::test {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

std::shared_ptr<ssl::context> make_context(const ServerTls& tls) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->use_certificate_chain(asio::buffer(tls.identity.certificate));
  context->use_private_key(asio::buffer(tls.identity.key), ssl::context::pem);
  if (!tls.client_authority.empty()) {
    context->add_certificate_authority(asio::buffer(tls.client_authority));
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  }
  if (tls.only_old) {
    SSL_CTX_set_cipher_list(context->native_handle(), "DEFAULT:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context->native_handle(), TLS1_1_VERSION);
  }
  return context;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

/// A connection, plain or TLS, as Beast reads from it.
class Exchange::Wire {
 public:
  Wire(tcp::socket socket, std::shared_ptr<ssl::context> context, const std::atomic<bool>& stopped)
      : context_{std::move(context)}, stopped_{stopped} {
    if (context_)
      stream_.emplace<Tls>(std::move(socket), *context_);
    else
      stream_.emplace<tcp::socket>(std::move(socket));
    descriptor_ = lowest().native_handle();
  }

  bool shake_hands() {
    error_code error;
    if (auto* tls = std::get_if<Tls>(&stream_)) tls->handshake(ssl::stream_base::server, error);
    return !error;
  }

  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, error_code& error) {
    return visit([&](auto& stream) { return stream.read_some(buffers, error); });
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    return visit([&](auto& stream) { return stream.read_some(buffers); });
  }

  bool write(std::string_view bytes) {
    error_code error;
    visit([&](auto& stream) { return asio::write(stream, asio::buffer(bytes), error); });
    if (error) cut();
    return !error;
  }

  /// From any thread: whoever reads or writes fails.
  void cut() {
    broken_ = true;
    ::shutdown(descriptor_, SHUT_RDWR);
  }

  [[nodiscard]] bool is_broken() const { return broken_ || stopped_; }

  /// The client has gone, or said something in the middle of an answer, which it has no reason to but for good-bye.
  [[nodiscard]] bool hears_from_client(std::chrono::milliseconds wait) const {
    pollfd poll{.fd = descriptor_, .events = POLLIN, .revents = 0};
    return ::poll(&poll, 1, static_cast<int>(wait.count())) != 0;
  }

 private:
  using Tls = ssl::stream<tcp::socket>;

  template <class Use>
  std::size_t visit(Use use) {
    if (auto* tls = std::get_if<Tls>(&stream_)) return use(*tls);
    return use(std::get<tcp::socket>(stream_));
  }
  tcp::socket& lowest() {
    if (auto* tls = std::get_if<Tls>(&stream_)) return tls->next_layer();
    return std::get<tcp::socket>(stream_);
  }

  std::shared_ptr<ssl::context> context_;
  const std::atomic<bool>& stopped_;
  std::variant<std::monostate, tcp::socket, Tls> stream_;
  int descriptor_ = -1;
  std::atomic<bool> broken_ = false;
};

void Feed::add(Step step) {
  const std::lock_guard lock{mutex_};
  steps_.push_back(std::move(step));
  added_.notify_all();
}

std::optional<Feed::Step> Feed::take() {
  std::unique_lock lock{mutex_};
  if (!added_.wait_for(lock, 10ms, [&] { return !steps_.empty(); })) return std::nullopt;
  auto step = std::move(steps_.front());
  steps_.pop_front();
  return step;
}

void Exchange::answer(int status, std::string_view body, const Headers& headers) {
  auto head = fmt::format("HTTP/1.1 {} \r\nContent-Length: {}\r\n", status, body.size());
  if (!headers.contains("Content-Type")) head += "Content-Type: application/json\r\n";
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  wire_.write(head + "\r\n" + std::string(body));
}

void Exchange::refuse(int status, std::string_view reason, std::string_view message, const Headers& headers) {
  const boost::json::value object{{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                                  {"message", message}, {"reason", reason},   {"code", status}};
  answer(status, boost::json::serialize(object), headers);
}

void Exchange::stream(Feed& feed) {
  wire_.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  while (!wire_.is_broken() && !wire_.hears_from_client(0ms)) {
    const auto step = feed.take();
    if (!step) continue;
    switch (step->kind) {
      case Feed::Step::Kind::Text: wire_.write(fmt::format("{:x}\r\n{}\r\n", step->text.size(), step->text)); break;
      case Feed::Step::Kind::End: wire_.write("0\r\n\r\n"); return;
      case Feed::Step::Kind::Cut:
        wire_.write("ffff\r\n{\"type\":");
        wire_.cut();
        return;
    }
  }
}

void Exchange::raw(std::string_view bytes) { wire_.write(bytes); }

void Exchange::cut() { wire_.cut(); }

void Exchange::hold() {
  while (!wire_.is_broken() && !wire_.hears_from_client(10ms)) {
  }
  wire_.cut();
}

Handler answers(int status, std::string body, Headers headers) {
  return [=](Exchange& exchange) { exchange.answer(status, body, headers); };
}

Handler refuses(int status, std::string reason, std::string message, Headers headers) {
  return [=](Exchange& exchange) { exchange.refuse(status, reason, message, headers); };
}

Handler streams(FeedPtr feed) {
  return [feed](Exchange& exchange) { exchange.stream(*feed); };
}

struct ApiServer::Impl {
  void listen() {
    stopped = false;
    acceptor.open(tcp::v4());
    acceptor.set_option(asio::socket_base::reuse_address(true));
    acceptor.bind({asio::ip::make_address("127.0.0.1"), port});
    acceptor.listen();
    port = acceptor.local_endpoint().port();
    listener = std::thread([this] { accept(); });
  }

  void accept() {
    for (;;) {
      error_code error;
      auto socket = acceptor.accept(error);
      const std::lock_guard lock{mutex};
      if (stopped) return;
      if (error) continue;
      const int number = ++accepted;
      auto wire = std::make_shared<Exchange::Wire>(std::move(socket), context, stopped);
      wires.insert(wire);
      threads.emplace_back([this, wire, number] { serve(wire, number); });
    }
  }

  void serve(const std::shared_ptr<Exchange::Wire>& wire, int number) {
    if (wire->shake_hands()) {
      boost::beast::flat_buffer buffer;
      while (!wire->is_broken()) {
        http::request<http::string_body> request;
        error_code error;
        http::read(*wire, buffer, request, error);
        if (error) break;
        respond(*wire, asked_by(request, number));
        if (request.need_eof()) break;
      }
    }
    wire->cut();
    const std::lock_guard lock{mutex};
    wires.erase(wire);
  }

  static Asked asked_by(const http::request<http::string_body>& request, int number) {
    Asked asked{.method = std::string(request.method_string()),
                .target = std::string(request.target()),
                .headers = {},
                .body = request.body(),
                .connection = number};
    for (const auto& field : request) asked.headers[lower(field.name_string())] = field.value();
    return asked;
  }

  void respond(Exchange::Wire& wire, Asked asked) {
    Handler handler;
    {
      const std::lock_guard lock{mutex};
      requests.push_back(asked);
      if (script.empty()) {
        handler = rest;
      } else {
        handler = std::move(script.front());
        script.pop_front();
      }
    }
    Exchange exchange{wire, std::move(asked)};
    if (handler)
      handler(exchange);
    else
      exchange.refuse(404, "NotFound", "the test has no answer to " + exchange.asked().line());
  }

  void cut_all() {
    const std::lock_guard lock{mutex};
    for (const auto& wire : wires) wire->cut();
  }

  void stop() {
    if (!listener.joinable()) return;
    std::vector<std::thread> ending;
    {
      const std::lock_guard lock{mutex};
      stopped = true;
      ::shutdown(acceptor.native_handle(), SHUT_RDWR);
      for (const auto& wire : wires) wire->cut();
    }
    listener.join();
    acceptor.close();
    ending.swap(threads);
    for (auto& thread : ending) thread.join();
  }

  asio::io_context io{};
  tcp::acceptor acceptor{io};
  unsigned short port = 0;
  std::shared_ptr<ssl::context> context{};
  std::optional<ServerTls> tls{};
  std::atomic<bool> stopped = false;
  std::thread listener{};

  mutable std::mutex mutex{};  // for all below
  std::vector<std::thread> threads{};
  std::set<std::shared_ptr<Exchange::Wire>> wires{};
  std::deque<Handler> script{};
  Handler rest{};
  std::vector<Asked> requests{};
  int accepted = 0;
};

ApiServer::ApiServer(std::optional<ServerTls> tls) : impl_{std::make_unique<Impl>()} {
  if (tls) impl_->context = make_context(*tls);
  impl_->tls = std::move(tls);
  impl_->listen();
}

ApiServer::~ApiServer() { impl_->stop(); }

int ApiServer::port() const { return impl_->port; }

std::string ApiServer::url(std::string_view host) const {
  return fmt::format("{}://{}:{}", impl_->tls ? "https" : "http", host, impl_->port);
}

void ApiServer::then(Handler handler) {
  const std::lock_guard lock{impl_->mutex};
  impl_->script.push_back(std::move(handler));
}

void ApiServer::otherwise(Handler handler) {
  const std::lock_guard lock{impl_->mutex};
  impl_->rest = std::move(handler);
}

void ApiServer::present(const Issued& identity) {
  auto tls = impl_->tls.value_or(ServerTls{});
  tls.identity = identity;
  const std::lock_guard lock{impl_->mutex};
  impl_->context = make_context(tls);
}

void ApiServer::cut_all() { impl_->cut_all(); }
void ApiServer::stop_listening() { impl_->stop(); }
void ApiServer::listen_again() { impl_->listen(); }

std::vector<Asked> ApiServer::asked() const {
  const std::lock_guard lock{impl_->mutex};
  return impl_->requests;
}

std::vector<std::string> ApiServer::lines() const {
  std::vector<std::string> lines;
  for (const auto& request : asked()) lines.push_back(request.line());
  return lines;
}

int ApiServer::connections() const {
  const std::lock_guard lock{impl_->mutex};
  return impl_->accepted;
}

}  // namespace evictd::test
