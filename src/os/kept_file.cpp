#include "os/kept_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include "os/numbers.hpp"

namespace evictd::os {

FileResult<std::string_view> KeptFile::read(std::span<char> buffer) const {
  for (;;) {
    const auto count = ::pread(descriptor_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path_));
    if (static_cast<std::size_t>(count) == buffer.size()) return std::unexpected(system_error(EFBIG, path_));
    return std::string_view(buffer.data(), static_cast<std::size_t>(count));
  }
}

FileResult<std::int64_t> KeptFile::read_number() const {
  std::array<char, 64> buffer;
  const auto text = read(buffer);
  if (!text) return std::unexpected(text.error());
  if (const auto number = parse_number(*text)) return *number;
  return std::unexpected(
      content_error(path_, fmt::format("\"{}\" is not a number", text->substr(0, text->find('\n')))));
}

FileResult<std::optional<std::int64_t>> KeptFile::read_limit() const {
  std::array<char, 64> buffer;
  const auto text = read(buffer);
  if (!text) return std::unexpected(text.error());
  const auto line = text->substr(0, text->find('\n'));
  if (line == "max") return std::nullopt;
  if (const auto number = parse_number(line)) return number;
  return std::unexpected(content_error(path_, fmt::format("\"{}\" is not a limit", line)));
}

}  // namespace evictd::os
