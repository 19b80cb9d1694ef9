#include "host/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace evictd::host {
namespace {

std::unexpected<Error> cannot_write(const std::filesystem::path& file, int code) {
  return fail(fmt::format("{}: cannot be written: {}", file.native(), std::strerror(code)));
}

}  // namespace

Result<void> replace_file(const std::filesystem::path& file, std::string_view text) {
  std::error_code made;
  std::filesystem::create_directories(file.parent_path(), made);
  if (made) return cannot_write(file, made.value());
  const auto next = file.native() + ".new";
  const int descriptor = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return cannot_write(file, errno);
  int code = 0;
  while (!text.empty() && code == 0) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      code = errno;
  }
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code == 0 && std::rename(next.c_str(), file.c_str()) != 0) code = errno;
  if (code == 0) return {};
  ::unlink(next.c_str());
  return cannot_write(file, code);
}

}  // namespace evictd::host
