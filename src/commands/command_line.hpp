#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Its header stays in command_line.cpp: it takes longer to read than most of our files.
namespace CLI {
class App;
}

namespace evictd::commands {

/// What a command takes, as the command declares it. Each declaration names a variable, which must outlive the reading
/// of the command line and is filled in before the command runs.
class CommandLine {
 public:
  struct Option {
    std::string names;    ///< "-f,--file"; without a dash it is an argument that has its place
    std::string meaning;  ///< for the help
    std::string type{};   ///< what the help calls the value; "": TEXT
    bool required = false;
    std::vector<std::string> one_of{};  ///< the values that are allowed; empty: all
  };

  explicit CommandLine(CLI::App& command) : command_{command} {}

  void option(const Option& option, std::string& value);
  void option(const Option& option, std::optional<std::string>& value);
  void flag(const std::string& name, const std::string& meaning, bool& value);

 private:
  CLI::App& command_;
};

/// A subcommand of evictd.
struct Command {
  std::string name;
  std::string description;
  /// Declares the command's arguments and returns what to run once they are read. That returns the exit code.
  std::function<std::function<int()>(CommandLine&)> declare;
  bool by_default = false;  ///< what is meant where no command is named
};

/// Reads the command line, runs the command it names and returns the exit code.
[[nodiscard]] int run_command_line(int argc, const char* const* argv, std::span<const Command> commands);

/// Writes a command's result and a line end to stdout; 0, or 1 where it cannot be written (the error is logged).
[[nodiscard]] int print(std::string_view result);

}  // namespace evictd::commands
