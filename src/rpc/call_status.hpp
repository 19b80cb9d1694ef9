#pragma once
#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace evictd::rpc {

/// How a call ended, from what the server's headers and trailers say of it (gRPC over HTTP/2: Responses).
class CallStatus {
 public:
  /// One field. What says nothing of the end is left out; a field that comes again counts as it was first. What belongs
  /// to an interim response (1xx) counts for nothing once there is another.
  void add(std::string_view name, std::string_view value);
  /// For a stream that the server has ended in order.
  [[nodiscard]] grpc::Status status() const;

 private:
  std::optional<int> http_;
  std::optional<int> code_;
  std::optional<std::string> message_;
};

/// For a stream that was reset, by the error code of HTTP/2 (gRPC over HTTP/2: Errors).
[[nodiscard]] grpc::Status status_of_reset(std::uint32_t http2_error);

}  // namespace evictd::rpc
