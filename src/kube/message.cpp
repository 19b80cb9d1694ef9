#include "kube/message.hpp"

#include <fmt/format.h>

#include <boost/beast/http/status.hpp>

#include "core/printable.hpp"
#include "kube/status_object.hpp"

namespace evictd::kube {
std::string describe(const Response& response) {
  const auto reason = boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(response.status));
  auto text = fmt::format("{} {}", response.status, std::string_view(reason.data(), reason.size()));
  auto message = core::printable(parse_status(response.body).value_or(StatusObject{}).message);
  constexpr std::size_t longest = 400;
  if (message.size() > longest) message = std::string(core::beginning(message, longest)) + "…";
  return message.empty() ? text : text + ": " + message;
}

}  // namespace evictd::kube
