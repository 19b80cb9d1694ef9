#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace grpc {
class ServerContext;
}

namespace evictd::api {

/// What a caller may do.
enum class Role : std::uint8_t {
  None,    ///< nothing: its certificate is good, and its name is in no list
  Reader,  ///< look
  Admin,   ///< look and change
};

/// Who calls.
struct Caller {
  Role role = Role::None;
  std::string name{};     ///< for events of kind AUDIT and for errors: "uid 0 (root), pid 4711, admin.sock"
  std::string account{};  ///< who it is whatever its connection: "uid 1000". Calls in flight are bounded for each
  std::string remedy{};   ///< what one who may do too little could do: "use admin.sock (/run/evictd/admin.sock)"
};

/// Tells callers by their connection. Called on the thread of a completion queue, while the call is open.
using Identify = std::function<Caller(const grpc::ServerContext&)>;

}  // namespace evictd::api
