#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::rpc {

/// A message as it goes over the wire: behind a byte that says that it is not compressed, and its length in four (gRPC
/// over HTTP/2: Length-Prefixed-Message). At most 4 GiB.
[[nodiscard]] std::string framed(std::string_view message);

/// Finds the messages in what a stream brings, which may be cut anywhere.
class MessageReader {
 public:
  /// `largest`: bytes of a message. Of one that is larger nothing is kept.
  explicit MessageReader(std::size_t largest) : largest_(largest) {}

  /// An error is the end: nothing may be added any more.
  [[nodiscard]] Result<void> add(std::string_view bytes);

  /// What has come in whole, in order. The caller takes it from here.
  std::deque<std::string> messages{};
  /// The stream may end here: no message is begun.
  [[nodiscard]] bool is_between_messages() const { return prefix_size_ == 0; }

 private:
  static constexpr std::size_t prefix_length = 5;

  [[nodiscard]] Result<void> begin_message();

  std::size_t largest_;
  std::array<char, prefix_length> prefix_{};
  std::size_t prefix_size_ = 0;
  std::size_t size_ = 0;  ///< of the message that is under way
  std::string message_{};
};

}  // namespace evictd::rpc
