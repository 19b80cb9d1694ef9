#include "testbed/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "os/numbers.hpp"
#include "os/unix_address.hpp"
#include "testbed/failure.hpp"

namespace testbed {

namespace fs = std::filesystem;

std::optional<std::string> try_read_file(const fs::path& file) {
  const evictd::os::FileDescriptor fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.get() < 0) return std::nullopt;
  std::string text;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto length = ::read(fd.get(), buffer.data(), buffer.size());
    if (length < 0) return std::nullopt;
    if (length == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
}

std::string read_file(const fs::path& file) {
  auto text = try_read_file(file);
  if (!text) fail_errno(file.native());
  return std::move(*text);
}

std::int64_t read_number(const fs::path& file) {
  const std::string text = read_file(file);
  if (text == "max\n") return std::numeric_limits<std::int64_t>::max();
  const auto number = evictd::os::parse_number(text);
  if (!number) fail(file.native() + ": not a number: " + text);
  return *number;
}

void write_file(const fs::path& file, std::string_view text) {
  const evictd::os::FileDescriptor fd{::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, 0644)};
  if (fd.get() < 0) fail_errno(file.native());
  const auto written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) fail_errno(file.native());
  if (static_cast<std::size_t>(written) != text.size()) fail(file.native() + ": only a part was written");
}

void make_users_directory(const fs::path& directory) {
  constexpr uid_t user = 1000;
  fs::create_directories(directory);
  write_file(directory / "file", "");
  for (const auto& path : {directory / "file", directory})
    if (::chown(path.c_str(), user, user) != 0) fail_errno(path.native());
  fs::permissions(directory, fs::perms::owner_all);
}

void replace_file(const fs::path& file, std::string_view text) {
  fs::path fresh = file;
  fresh += ".new";
  write_file(fresh, text);
  fs::rename(fresh, file);
}

bool accepts(const fs::path& socket) {
  const evictd::os::FileDescriptor fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int error = evictd::os::connect_to(fd.get(), socket.native());
  if (error == ENAMETOOLONG) fail_errno(socket.native(), error);
  return error == 0;
}

bool is_below(const fs::path& path, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first == directory.end();
}

}  // namespace testbed
