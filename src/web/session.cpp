#include "web/session.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "async/spawn.hpp"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

namespace evictd::web {
namespace {

using boost::system::error_code;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

constexpr std::size_t longest_header = 8192;
constexpr auto reply = asio::as_tuple(asio::use_awaitable);

/// What a request that is none, or none for us, is told. Absent: nothing, since no client is there to read it.
std::optional<http::status> refusal(error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return http::status::request_header_fields_too_large;
  if (error == http::error::body_limit || error == http::error::unexpected_body) return http::status::payload_too_large;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  if (error.category() == make_error_code(http::error::bad_method).category()) return http::status::bad_request;
  return std::nullopt;
}

Response plain(http::status status) {
  Response response{status, 11};
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.body() = std::string(http::obsolete_reason(status)) + "\n";
  return response;
}

/// Without the query.
std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Sessions> sessions, asio::ip::tcp::socket socket)
      : sessions_{std::move(sessions)}, stream_{std::move(socket)} {
    place_ = sessions_->open_.insert(sessions_->open_.end(), this);
  }
  ~Session() { leave(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static asio::awaitable<void> run(std::shared_ptr<Session> self) {
    // Not as the loop's condition, with nothing to do in the loop: GCC 12 takes that for unreachable.
    bool goes_on = true;
    while (goes_on) goes_on = co_await self->serve_one();
  }

  /// What is under way fails, and the session ends a little later.
  void close() {
    leave();
    stream_.close();
  }
  [[nodiscard]] bool waiting() const { return waiting_; }

 private:
  /// Whether the connection goes on.
  asio::awaitable<bool> serve_one();
  asio::awaitable<bool> answer(const Request& request);
  asio::awaitable<bool> send(Response response, bool head, bool keep_alive);
  asio::awaitable<void> stream(std::unique_ptr<Messages> messages, bool head);
  asio::awaitable<void> turn_away(http::status status);
  void wait() {
    waiting_ = true;
    if (listed_) sessions_->open_.splice(sessions_->open_.end(), sessions_->open_, place_);
  }
  void leave() {
    if (std::exchange(listed_, false)) sessions_->open_.erase(place_);
  }

  std::shared_ptr<Sessions> sessions_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{2 * longest_header};
  std::list<Session*>::iterator place_;
  bool listed_ = true;
  bool waiting_ = true;
};

asio::awaitable<bool> Session::serve_one() {
  wait();
  if (buffer_.size() == 0) {
    stream_.expires_after(sessions_->limits.idle);
    const auto [error, size] = co_await stream_.async_read_some(buffer_.prepare(longest_header), reply);
    if (error) co_return false;
    buffer_.commit(size);
  }
  stream_.expires_after(sessions_->limits.request);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(longest_header);
  parser.body_limit(0);
  const auto [error, size] = co_await http::async_read(stream_, buffer_, parser, reply);
  if (error) {
    if (const auto status = refusal(error)) co_await turn_away(*status);
    co_return false;
  }
  waiting_ = false;
  const Request request = parser.release();
  co_return co_await answer(request);
}

asio::awaitable<bool> Session::answer(const Request& request) {
  const bool head = request.method() == http::verb::head;
  const bool keep_alive = request.keep_alive();
  const auto& content = sessions_->content;
  const auto path = path_of({request.target().data(), request.target().size()});
  const auto document = content.documents.find(path);
  const auto messages = content.streams.find(path);
  const bool found = document != content.documents.end() || messages != content.streams.end();
  if (!found) co_return co_await send(plain(http::status::not_found), head, keep_alive);
  if (!head && request.method() != http::verb::get) {
    auto response = plain(http::status::method_not_allowed);
    response.set(http::field::allow, "GET, HEAD");
    co_return co_await send(std::move(response), head, keep_alive);
  }
  if (messages != content.streams.end()) {
    std::unique_ptr<Messages> begun;
    if (!head) begun = messages->second();  // which has work done for whoever stays
    if (!head && begun == nullptr) co_return co_await send(plain(http::status::service_unavailable), head, keep_alive);
    co_await stream(std::move(begun), head);
    co_return false;
  }
  Response response{http::status::ok, 11};
  response.set(http::field::content_type, document->second.content_type);
  for (const auto& [name, value] : document->second.headers) response.set(name, value);
  response.body() = co_await document->second.body();
  co_return co_await send(std::move(response), head, keep_alive);
}

asio::awaitable<bool> Session::send(Response response, bool head, bool keep_alive) {
  response.set(http::field::server, "evictd");
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.keep_alive(keep_alive);
  response.prepare_payload();
  stream_.expires_after(sessions_->limits.write);
  http::response_serializer<http::string_body> serializer{response};
  error_code error;
  if (head) {
    serializer.split(true);
    std::tie(error, std::ignore) = co_await http::async_write_header(stream_, serializer, reply);
  } else {
    std::tie(error, std::ignore) = co_await http::async_write(stream_, serializer, reply);
  }
  co_return !error && keep_alive;
}

/// The end of the connection is the end of the stream. `messages`: null for the header alone.
asio::awaitable<void> Session::stream(std::unique_ptr<Messages> messages, bool head) {
  constexpr std::string_view header =
      "HTTP/1.1 200 OK\r\nServer: evictd\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";
  stream_.expires_after(sessions_->limits.write);
  auto [error, size] = co_await asio::async_write(stream_, asio::buffer(header), reply);
  while (!error && !head) {
    const auto message = co_await messages->next();
    if (message == nullptr) co_return;
    stream_.expires_after(sessions_->limits.write);
    std::tie(error, size) = co_await asio::async_write(stream_, asio::buffer(*message), reply);
  }
}

/// Reads on for a moment: a connection that is closed with something unread is reset, and takes the answer with it.
asio::awaitable<void> Session::turn_away(http::status status) {
  if (!co_await send(plain(status), false, false) && !stream_.socket().is_open()) co_return;
  error_code error;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
  stream_.expires_after(sessions_->limits.linger);
  std::array<char, 4096> rest{};
  for (std::size_t read = 0, size = 0; !error && read < 16 * rest.size(); read += size)
    std::tie(error, size) = co_await stream_.async_read_some(asio::buffer(rest), reply);
}

void Sessions::make_room(std::size_t most) {
  if (open_.size() < most || open_.empty()) return;
  const auto waiting = std::ranges::find_if(open_, [](const Session* session) { return session->waiting(); });
  (waiting != open_.end() ? *waiting : open_.front())->close();
}

void Sessions::close_all() {
  while (!open_.empty()) open_.front()->close();
}

void begin_session(const std::shared_ptr<Sessions>& sessions, asio::ip::tcp::socket socket) {
  const auto executor = socket.get_executor();
  async::spawn_contained(executor, Session::run(std::make_shared<Session>(sessions, std::move(socket))),
                         sessions->on_client_failure);
}

}  // namespace evictd::web
