#include "evictctl/input.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace evictd::ctl {

Result<std::string> read_input(std::istream& stream) {
  constexpr std::size_t largest = std::size_t{1} << 20;
  std::string text(largest + 1, '\0');
  // By the stream, which fails where its buffer throws: that of a directory does.
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.fail() && !stream.eof())) return fail(std::strerror(errno));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > largest) return fail("is larger than 1 MiB");
  return text;
}

}  // namespace evictd::ctl
