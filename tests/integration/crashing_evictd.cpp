// evictd, to which something happens where EVICTD_CRASH_AT says, at the first crash point of that name. EVICTD_CRASH_BY
// says what: "kill" (or nothing) is SIGKILL, "throw" an exception, and "wait" holds it there for a second. All else is
// the real program's.
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "commands/run.hpp"
#include "os/crash_point.hpp"

namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

void crash(std::string_view point) {
  static bool done = false;
  if (point != variable("EVICTD_CRASH_AT") || std::exchange(done, true)) return;
  const auto by = variable("EVICTD_CRASH_BY");
  if (by == "throw") throw std::runtime_error("thrown on purpose at " + std::string(point));
  if (by == "wait")
    std::this_thread::sleep_for(std::chrono::seconds{1});
  else
    ::kill(::getpid(), SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  evictd::os::at_crash_point = crash;
  const std::array commands{evictd::commands::run_command()};
  return evictd::commands::run_command_line(argc, argv, commands);
}
