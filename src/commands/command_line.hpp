#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace CLI {
class App;
}

namespace evictd::commands {

// Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration. An error is one line on stderr.

/// A subcommand of evictd.
struct Command {
  std::string name;
  std::string description;
  /// Adds the command's arguments and returns what to run once they are read. That returns the exit code.
  std::function<std::function<int()>(CLI::App&)> declare;
  bool by_default = false;  ///< what is meant where no command is named
};

/// Reads the command line, runs the command it names and returns the exit code.
[[nodiscard]] int run_command_line(int argc, const char* const* argv, std::span<const Command> commands);

/// Writes a command's result and a line end to stdout; 0, or 1 where it cannot be written (the error is reported).
[[nodiscard]] int print(std::string_view result);

/// Report the error; return 2 and 1.
[[nodiscard]] int wrong_usage(const Error& error);
[[nodiscard]] int failed(const Error& error);

}  // namespace evictd::commands
