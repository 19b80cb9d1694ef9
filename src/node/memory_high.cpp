#include "node/memory_high.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

constexpr auto high_file = "memory.high";
constexpr auto mark_name = "user.evictd.fence";

std::string print(std::optional<std::int64_t> high) { return high ? fmt::format("{}", *high) : "max"; }

/// The outer optional: whether the text is a value at all.
std::optional<std::optional<std::int64_t>> parse_high(std::string_view text) {
  if (text == "max") return std::optional<std::int64_t>{};
  const auto number = os::parse_number(text);
  if (!number) return std::nullopt;
  return number;
}

std::string path_of(const os::Directory& cgroup, std::string_view name) {
  return fmt::format("{}/{}", cgroup.path(), name);
}

}  // namespace

os::FileResult<std::optional<std::int64_t>> read_memory_high(const os::Directory& cgroup) {
  const auto file = cgroup.file(high_file);
  if (!file) return std::unexpected(file.error());
  return file->read_limit();
}

os::FileResult<void> write_memory_high(const os::Directory& cgroup, std::optional<std::int64_t> high) {
  // Linux 6.16: O_NONBLOCK leaves it to the allocators to reclaim.
  const os::FileDescriptor file{::openat(cgroup.descriptor(), high_file, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC)};
  const auto text = print(high) + "\n";
  if (!file || ::write(file.get(), text.data(), text.size()) < 0)
    return std::unexpected(os::system_error(errno, path_of(cgroup, high_file)));
  return {};
}

std::string FenceMark::text() const { return fmt::format("{} {}", print(before), print(now)); }

std::optional<FenceMark> FenceMark::parse(std::string_view text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto before = parse_high(text.substr(0, space));
  const auto now = parse_high(text.substr(space + 1));
  if (!before || !now) return std::nullopt;
  return FenceMark{*before, *now};
}

os::FileResult<std::optional<FenceMark>> read_fence_mark(const os::Directory& cgroup) {
  std::array<char, 64> buffer;
  const auto size = ::fgetxattr(cgroup.descriptor(), mark_name, buffer.data(), buffer.size());
  if (size >= 0) return FenceMark::parse({buffer.data(), static_cast<std::size_t>(size)});
  if (errno == ENODATA || errno == EOPNOTSUPP || errno == ERANGE) return std::optional<FenceMark>{};
  return std::unexpected(os::system_error(errno, path_of(cgroup, mark_name)));
}

os::FileResult<void> write_fence_mark(const os::Directory& cgroup, const FenceMark& mark) {
  const auto text = mark.text();
  if (::fsetxattr(cgroup.descriptor(), mark_name, text.data(), text.size(), 0) == 0) return {};
  return std::unexpected(os::system_error(errno, path_of(cgroup, mark_name)));
}

os::FileResult<void> remove_fence_mark(const os::Directory& cgroup) {
  if (::fremovexattr(cgroup.descriptor(), mark_name) == 0 || errno == ENODATA || errno == EOPNOTSUPP) return {};
  return std::unexpected(os::system_error(errno, path_of(cgroup, mark_name)));
}

}  // namespace evictd::node
