#include "rpc/code_name.hpp"

#include <array>
#include <cstddef>

namespace evictd::rpc {

std::string_view name_of(grpc::StatusCode code) {
  static constexpr std::array<std::string_view, 17> names{
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto number = static_cast<std::size_t>(code);
  return number < names.size() ? names[number] : "UNKNOWN";
}

}  // namespace evictd::rpc
