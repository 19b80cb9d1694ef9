#include "rpc/message_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace evictd::rpc {

std::string framed(std::string_view message) {
  std::string bytes;
  bytes.reserve(message.size() + 5);
  bytes += '\0';
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(message.size() >> shift & 0xff);
  bytes += message;
  return bytes;
}

Result<void> MessageReader::add(std::string_view bytes) {
  const auto take = [&](std::size_t most) {
    const auto taken = bytes.substr(0, most);
    bytes.remove_prefix(taken.size());
    return taken;
  };
  while (!bytes.empty()) {
    if (prefix_size_ < prefix_length) {
      const auto part = take(prefix_length - prefix_size_);
      std::ranges::copy(part, prefix_.begin() + static_cast<std::ptrdiff_t>(prefix_size_));
      prefix_size_ += part.size();
      if (prefix_size_ < prefix_length) break;
      if (auto begun = begin_message(); !begun) return begun;
    }
    message_ += take(size_ - message_.size());
    if (message_.size() < size_) break;
    messages.push_back(std::exchange(message_, {}));
    prefix_size_ = 0;
  }
  return {};
}

Result<void> MessageReader::begin_message() {
  if (prefix_[0] != 0) return fail("the server sends a compressed message, which was not asked for");
  size_ = 0;
  for (const char byte : std::string_view(prefix_.data(), prefix_length).substr(1))
    size_ = size_ << 8 | static_cast<unsigned char>(byte);
  if (size_ > largest_) return fail(fmt::format("a message of {} bytes, where {} are taken at most", size_, largest_));
  message_.reserve(size_);
  return {};
}

}  // namespace evictd::rpc
