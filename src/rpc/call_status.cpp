#include "rpc/call_status.hpp"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <charconv>

#include "core/number.hpp"

namespace evictd::rpc {
namespace {

std::optional<int> number(std::string_view text) {
  const auto value = core::whole_number<int>(text);
  return value.value_or(-1) < 0 ? std::nullopt : value;
}

std::optional<char> hexadecimal(std::string_view two) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(two.data(), two.data() + two.size(), value, 16);
  if (two.size() != 2 || error != std::errc{} || end != two.data() + two.size()) return std::nullopt;
  return static_cast<char>(value);
}

/// grpc-message: bytes that are not printable stand there as %XX. What is no such triple stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = text[at] == '%' ? hexadecimal(text.substr(at + 1, 2)) : std::nullopt;
    decoded += byte.value_or(text[at]);
    if (byte) at += 2;
  }
  return decoded;
}

/// (gRPC: http-grpc-status-mapping)
grpc::StatusCode code_of_http(int status) {
  switch (status) {
    case 400: return grpc::StatusCode::INTERNAL;
    case 401: return grpc::StatusCode::UNAUTHENTICATED;
    case 403: return grpc::StatusCode::PERMISSION_DENIED;
    case 404: return grpc::StatusCode::UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504: return grpc::StatusCode::UNAVAILABLE;
    default: return grpc::StatusCode::UNKNOWN;
  }
}

}  // namespace

void CallStatus::add(std::string_view name, std::string_view value) {
  const bool was_interim = http_ && *http_ < 200;
  if (name == ":status" && was_interim) *this = {};
  if (name == ":status" && !http_) http_ = number(value);
  if (name == "grpc-status" && !code_) code_ = number(value).value_or(grpc::StatusCode::UNKNOWN);
  if (name == "grpc-message" && !message_) message_ = percent_decoded(value);
}

grpc::Status CallStatus::status() const {
  if (code_) {
    const bool is_known = *code_ <= grpc::StatusCode::UNAUTHENTICATED;
    return {is_known ? static_cast<grpc::StatusCode>(*code_) : grpc::StatusCode::UNKNOWN, message_.value_or("")};
  }
  if (http_ && *http_ != 200)
    return {code_of_http(*http_), fmt::format("the server answers with HTTP status {}", *http_)};
  return {grpc::StatusCode::UNKNOWN, "the server ended the call without a status"};
}

grpc::Status status_of_reset(std::uint32_t http2_error) {
  const auto code = [&] {
    switch (http2_error) {
      case NGHTTP2_REFUSED_STREAM: return grpc::StatusCode::UNAVAILABLE;
      case NGHTTP2_CANCEL: return grpc::StatusCode::CANCELLED;
      case NGHTTP2_ENHANCE_YOUR_CALM: return grpc::StatusCode::RESOURCE_EXHAUSTED;
      case NGHTTP2_INADEQUATE_SECURITY: return grpc::StatusCode::PERMISSION_DENIED;
      default: return grpc::StatusCode::INTERNAL;
    }
  }();
  return {code, fmt::format("the call was reset ({})", nghttp2_http2_strerror(http2_error))};
}

}  // namespace evictd::rpc
