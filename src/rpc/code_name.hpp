#pragma once
#include <grpcpp/support/status.h>

#include <string_view>

namespace evictd::rpc {

/// "UNAVAILABLE", as gRPC's documentation spells it: the library knows but numbers. A number beyond them is "UNKNOWN".
[[nodiscard]] std::string_view name_of(grpc::StatusCode code);

}  // namespace evictd::rpc
