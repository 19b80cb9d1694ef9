#pragma once
#include <optional>
#include <string>

#include "core/duration.hpp"

namespace evictd::kube {

struct Request {
  std::string method = "GET";
  std::string target{};        ///< path and query, percent-encoded; the server's base path is put before it
  std::string content_type{};  ///< of the body: "application/json", "application/strategic-merge-patch+json", …
  std::string body{};
};

/// What the server answered, whatever it was: 404 and 500 are answers too.
struct Response {
  int status = 0;
  std::string body{};
  std::optional<core::Duration> retry_after{};  ///< only where it is given in seconds, as the API server does

  [[nodiscard]] bool is_success() const { return status >= 200 && status < 300; }
};

/// "403 Forbidden: pods is forbidden: User …": for an error line. The text is that of the Status object which the API
/// server puts into the body of every refusal (meta/v1 Status.message), shortened, on one line.
[[nodiscard]] std::string describe(const Response& response);

}  // namespace evictd::kube
