#include "kube/message.hpp"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <boost/json/parse.hpp>

#include "core/printable.hpp"

namespace evictd::kube {
namespace {

/// The message of a Status object; empty if the body is none.
std::string status_message(const std::string& body) {
  constexpr std::size_t largest = std::size_t{64} << 10;  // it is parsed on the reactor
  if (body.size() > largest) return {};
  boost::system::error_code error;
  const auto value = boost::json::parse(body, error);
  if (error || !value.is_object()) return {};
  const auto* message = value.get_object().if_contains("message");
  return message != nullptr && message->is_string() ? std::string(message->get_string()) : std::string();
}

}  // namespace

std::string describe(const Response& response) {
  const auto reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(response.status));
  auto text = fmt::format("{} {}", response.status, std::string_view(reason.data(), reason.size()));
  auto message = core::printable(status_message(response.body));
  constexpr std::size_t longest = 400;
  if (message.size() > longest) message = std::string(core::beginning(message, longest)) + "…";
  return message.empty() ? text : text + ": " + message;
}

}  // namespace evictd::kube
