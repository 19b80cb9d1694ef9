#pragma once
#include <grpcpp/support/status.h>

#include <cstdint>
#include <string_view>

#include "api/caller.hpp"

namespace evictd::api {

enum class Access : std::uint8_t { Look, Change };

/// Whether the caller may: OK, or PERMISSION_DENIED with what it could do instead. `call` is for people: "Admit with
/// reserve".
[[nodiscard]] grpc::Status permit(const Caller& caller, Access access, std::string_view call);

}  // namespace evictd::api
