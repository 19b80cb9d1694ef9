#include "os/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

namespace evictd::os {
namespace {

/// All of it; errno otherwise.
int write_all(int descriptor, std::string_view content, bool durable) {
  while (!content.empty()) {
    const auto count = ::write(descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return !durable || ::fsync(descriptor) == 0 ? 0 : errno;
}

int write_file(const std::string& path, std::string_view content, AtomicWrite how) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, how.mode);
  if (descriptor < 0) return errno;
  const int written = write_all(descriptor, content, how.durable);
  const int closed = ::close(descriptor) == 0 ? 0 : errno;
  return written != 0 ? written : closed;
}

/// The new name is in the directory's own data, which has to reach the disk, too.
int sync_directory(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int synced = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return synced;
}

}  // namespace

Result<void> write_atomically(const std::filesystem::path& path, std::string_view content, AtomicWrite how) {
  const auto failed = [&](int code) -> Result<void> {
    return fail(fmt::format("{}: cannot be written: {}", path.native(), std::generic_category().message(code)));
  };
  const auto directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return failed(error.value());

  const auto next = path.native() + ".new";
  int code = write_file(next, content, how);
  if (code == 0 && std::rename(next.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) {
    ::unlink(next.c_str());
    return failed(code);
  }
  if (how.durable) code = sync_directory(directory);
  if (code == 0) return {};
  return fail(fmt::format("{}: was written, but may be lost with the power: {}", path.native(),
                          std::generic_category().message(code)));
}

}  // namespace evictd::os
