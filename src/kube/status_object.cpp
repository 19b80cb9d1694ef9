#include "kube/status_object.hpp"

#include <boost/json/parse.hpp>

#include "kube/json_access.hpp"

namespace evictd::kube {

std::optional<StatusObject> parse_status(std::string_view body) {
  constexpr std::size_t largest = std::size_t{64} << 10;
  if (body.size() > largest) return std::nullopt;
  boost::system::error_code error;
  const auto document = boost::json::parse(body, error);
  if (error || text_at(document, "/kind") != "Status") return std::nullopt;
  StatusObject status{.reason = text_at(document, "/reason"), .message = text_at(document, "/message")};
  if (const auto* causes = array_at(document, "/details/causes"))
    for (const auto& cause : *causes)
      status.causes.push_back({.reason = text_at(cause, "/reason"), .field = text_at(cause, "/field")});
  return status;
}

}  // namespace evictd::kube
