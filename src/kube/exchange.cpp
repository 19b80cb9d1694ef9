#include "kube/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdint>
#include <exception>
#include <sstream>
#include <utility>

#include "core/duration.hpp"
#include "core/number.hpp"

namespace evictd::kube {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::size_t read_size = 16384;  // one TLS record

bool is_printable(std::string_view text, bool blanks) {
  return std::ranges::all_of(text, [&](char c) { return (c > ' ' && c < '\x7f') || (blanks && c == ' '); });
}

std::optional<core::Duration> parse_seconds(std::string_view text) {
  const auto value = core::whole_number<std::int32_t>(text);
  if (!value || *value < 0) return std::nullopt;
  return std::chrono::seconds{*value};
}

std::string explain(const error_code& error, const ResponseLimits& limits) {
  if (error == http::error::header_limit)
    return fmt::format("the answer's header is larger than {} KiB", limits.header / 1024);
  if (error == http::error::body_limit)
    return fmt::format("the answer is larger than {} KiB", limits.body.value_or(0) / 1024);
  if (error == http::error::end_of_stream || error == http::error::partial_message)
    return "the server broke the connection";
  return "the answer is no HTTP: " + error.message();
}

}  // namespace

Result<std::string> request_bytes(const Request& request, const Server& server, std::string_view token) {
  const auto target = server.base_path + request.target;
  if (!is_printable(request.method, false) || !is_printable(target, false) || !target.starts_with('/') ||
      !is_printable(request.content_type, true))
    return fail(fmt::format("\"{} {}\" is no request", request.method, target));
  http::request<http::string_body> message;
  message.version(11);
  message.method_string(request.method);
  message.target(target);
  message.set(http::field::host, server.authority());
  message.set(http::field::user_agent, "evictd/" EVICTD_VERSION);
  message.set(http::field::accept, "application/json");
  if (!token.empty()) message.set(http::field::authorization, fmt::format("Bearer {}", token));
  if (!request.content_type.empty()) message.set(http::field::content_type, request.content_type);
  message.body() = request.body;
  message.prepare_payload();
  std::ostringstream out;
  out << message;
  return std::move(out).str();
}

struct ResponseReader::Impl {
  explicit Impl(ResponseLimits given) : limits{given} {
    parser.eager(true);
    parser.header_limit(static_cast<std::uint32_t>(limits.header));
    if (limits.body)
      parser.body_limit(*limits.body);
    else
      parser.body_limit(boost::none);
  }

  ResponseLimits limits;
  http::response_parser<http::string_body> parser;
  beast::flat_buffer buffer;
};

ResponseReader::ResponseReader(ResponseLimits limits) : impl_{std::make_unique<Impl>(limits)} {}
ResponseReader::ResponseReader(ResponseReader&&) noexcept = default;
ResponseReader& ResponseReader::operator=(ResponseReader&&) noexcept = default;
ResponseReader::~ResponseReader() = default;

std::span<char> ResponseReader::space() {
  const auto space = impl_->buffer.prepare(read_size);
  return {static_cast<char*>(space.data()), space.size()};
}

Result<void> ResponseReader::received(std::size_t count) {
  auto& [limits, parser, buffer] = *impl_;
  error_code error;
  if (count == 0) {
    if (!parser.got_some()) return fail("the server broke the connection");
    parser.put_eof(error);
    if (error) return fail(explain(error, limits));
    return {};
  }
  buffer.commit(count);
  while (buffer.size() > 0 && !parser.is_done()) {
    try {
      buffer.consume(parser.put(buffer.data(), error));
    } catch (const std::exception&) {
      // Without a limit Beast makes room for as much as the head says will come.
      return fail("the answer says that it is larger than there is memory");
    }
    if (error == http::error::need_more) break;
    if (error) return fail(explain(error, limits));
  }
  if (parser.is_header_done() && parser.get().result_int() < 200) return fail("an answer of status 1xx, unasked for");
  const auto encoding = parser.is_header_done() ? parser.get()[http::field::content_encoding] : "";
  if (!encoding.empty() && encoding != "identity") return fail("the answer is compressed, which was not asked for");
  return {};
}

bool ResponseReader::has_begun() const { return impl_->parser.got_some() || impl_->buffer.size() > 0; }
bool ResponseReader::has_head() const { return impl_->parser.is_header_done(); }
bool ResponseReader::is_done() const { return impl_->parser.is_done(); }
bool ResponseReader::keeps_alive() const {
  return is_done() && impl_->parser.keep_alive() && impl_->buffer.size() == 0;
}

Response ResponseReader::take() {
  auto& message = impl_->parser.get();
  const auto retry_after = message[http::field::retry_after];
  return {.status = static_cast<int>(message.result_int()),
          .body = std::exchange(message.body(), {}),
          .retry_after = parse_seconds({retry_after.data(), retry_after.size()})};
}

}  // namespace evictd::kube
