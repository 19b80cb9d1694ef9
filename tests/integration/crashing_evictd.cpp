// evictd, which SIGKILLs itself where EVICTD_CRASH_AT says: at the first crash point of that name. All else is the real
// program's.
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "commands/run.hpp"
#include "host/crash_point.hpp"

int main(int argc, char** argv) {
  evictd::host::at_crash_point = [](std::string_view name) {
    const char* wanted = std::getenv("EVICTD_CRASH_AT");
    if (wanted != nullptr && name == wanted) ::kill(::getpid(), SIGKILL);
  };
  const std::array commands{evictd::commands::run_command()};
  return evictd::commands::run_command_line(argc, argv, commands);
}
