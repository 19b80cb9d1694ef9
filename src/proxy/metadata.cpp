#include "proxy/metadata.hpp"

#include <grpc/grpc.h>
#include <grpc/slice.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace evictd::proxy {
namespace {

constexpr std::array<std::string_view, 10> of_the_connection{
    "user-agent",   "host",          "te",       "content-type", "grpc-previous-rpc-attempts",
    "grpc-timeout", "grpc-encoding", "lb-token", "lb-cost-bin",  "grpc-retry-pushback-ms",
};
constexpr std::string_view status_details = "grpc-status-details-bin";

/// Lent, not copied.
grpc_slice slice_of(grpc::string_ref text) { return grpc_slice_from_static_buffer(text.data(), text.size()); }

}  // namespace

bool passes(grpc::string_ref key, grpc::string_ref value) {
  const std::string_view name{key.data(), key.size()};
  if (name == status_details || std::ranges::find(of_the_connection, name) != of_the_connection.end()) return false;
  if (grpc_header_key_is_legal(slice_of(key)) == 0) return false;
  return grpc_is_binary_header(slice_of(key)) != 0 || grpc_header_nonbin_value_is_legal(slice_of(value)) != 0;
}

}  // namespace evictd::proxy
