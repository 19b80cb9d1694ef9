#include "testbed/names.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <system_error>

namespace testbed {

namespace {

constexpr std::string_view prefix = "evictd-test-";

}  // namespace

std::string unique_name() {
  static std::atomic<int> last = 0;
  return fmt::format("{}{}-{}", prefix, ::getpid(), ++last);
}

std::optional<pid_t> owner_of(std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  pid_t pid = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc{} || rest == name.data() + name.size() || *rest != '-' || pid <= 0) return std::nullopt;
  return pid;
}

bool is_leftover(std::string_view name) {
  const auto owner = owner_of(name);
  return owner && ::kill(*owner, 0) != 0 && errno == ESRCH;
}

}  // namespace testbed
