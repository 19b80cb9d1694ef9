#include "testbed/names.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "os/numbers.hpp"

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
  const auto dash = name.find('-');
  const auto pid = evictd::os::parse_number(name.substr(0, dash));
  if (dash == std::string_view::npos || !pid || *pid == 0) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

bool is_leftover(std::string_view name) {
  const auto owner = owner_of(name);
  return owner && ::kill(*owner, 0) != 0 && errno == ESRCH;
}

}  // namespace testbed
