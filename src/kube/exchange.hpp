#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "kube/message.hpp"
#include "kube/url.hpp"

namespace evictd::kube {

/// The bytes of a request (HTTP/1.1). `token`: empty for none. Error: a method, target or content type that would not
/// stay in its place.
[[nodiscard]] Result<std::string> request_bytes(const Request& request, const Server& server, std::string_view token);

struct ResponseLimits {
  std::size_t header = std::size_t{64} << 10;  ///< bytes, as Go's servers and clients are far below
  /// Bytes. A list of 500 pods takes some 10 MiB. Absent: the body is taken away piece by piece.
  std::optional<std::size_t> body = std::size_t{32} << 20;
};

/// Reads one response from bytes as they come, without any I/O: Boost.Beast's parser, fed by hand.
class ResponseReader {
 public:
  explicit ResponseReader(ResponseLimits limits);
  ResponseReader(ResponseReader&&) noexcept;
  ResponseReader& operator=(ResponseReader&&) noexcept;
  ~ResponseReader();

  /// Where the next bytes go. Then say how many came; none: the connection has ended.
  [[nodiscard]] std::span<char> space();
  Result<void> received(std::size_t count);

  [[nodiscard]] bool has_begun() const;  ///< any byte came
  [[nodiscard]] bool has_head() const;
  [[nodiscard]] bool is_done() const;
  /// Whether the connection may carry another request after this response.
  [[nodiscard]] bool keeps_alive() const;
  /// Status and Retry-After, once the head is there; the body as far as it came since the last call.
  [[nodiscard]] Response take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace evictd::kube
