#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evictd::kube {

struct StatusCause {
  std::string reason{};
  std::string field{};
};

/// The Status object (meta/v1) by which an API server says why it refused, as far as evictd reads it.
struct StatusObject {
  std::string reason{};
  std::string message{};  ///< as it was sent: not yet printable
  std::vector<StatusCause> causes{};
};

/// Nothing if the body is none: a proxy in between answers with anything. Nor is one of more than 64 KiB read, since
/// this is done on the reactor.
[[nodiscard]] std::optional<StatusObject> parse_status(std::string_view body);

}  // namespace evictd::kube
