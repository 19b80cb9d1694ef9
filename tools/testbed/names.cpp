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

bool is_leftover(std::string_view name) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  const auto dash = name.find('-');
  const auto owner = evictd::os::parse_number(name.substr(0, dash)).value_or(0);
  return dash != std::string_view::npos && owner > 0 && ::kill(static_cast<pid_t>(owner), 0) != 0 && errno == ESRCH;
}

}  // namespace testbed
