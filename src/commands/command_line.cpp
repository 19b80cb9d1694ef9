#include "commands/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "os/exit_code.hpp"
#include "os/log.hpp"

namespace evictd::commands {
namespace {

template <class Value>
void add(CLI::App& command, const CommandLine::Option& option, Value& value) {
  auto* added = command.add_option(option.names, value, option.meaning);
  if (option.required) added->required();
  if (!option.type.empty()) added->type_name(option.type);
  if (!option.one_of.empty()) added->check(CLI::IsMember(option.one_of));
}

bool is_general_option(std::string_view argument) {
  return argument == "-h" || argument == "--help" || argument == "--version";
}

/// The arguments without the program's name. Where they name no command, the default one is put before them.
Result<std::vector<std::string>> arguments(int argc, const char* const* argv, std::span<const Command> commands) {
  std::vector<std::string> result(argv + std::min(argc, 1), argv + argc);
  const bool names_command = !result.empty() && !result[0].starts_with('-');
  if (names_command && std::ranges::find(commands, result[0], &Command::name) == commands.end())
    return fail(fmt::format("there is no command \"{}\" (see \"evictd --help\")", result[0]));
  const auto standard = std::ranges::find(commands, true, &Command::by_default);
  const bool needs_command = !names_command && (result.empty() || !is_general_option(result[0]));
  if (needs_command && standard != commands.end()) result.insert(result.begin(), standard->name);
  return result;
}

/// Help and version are no errors; the rest is one line that says where to read on.
int report(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const auto parsed = app.get_subcommands();
  const auto command = parsed.empty() ? app.get_name() : app.get_name() + " " + parsed.front()->get_name();
  return os::wrong_usage({fmt::format("{} (see \"{} --help\")", error.what(), command)});
}

int choose_and_run(int argc, const char* const* argv, std::span<const Command> commands) try {
  CLI::App app{"evictd evicts pods the moment a node runs short of memory, disk space, inodes or process ids.",
               "evictd"};
  app.set_version_flag("--version", "evictd " EVICTD_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  auto given = arguments(argc, argv, commands);
  if (!given) return os::wrong_usage(given.error());
  std::ranges::reverse(*given);  // as CLI11 takes them
  std::function<int()> chosen;
  for (const auto& command : commands) {
    auto* subcommand = app.add_subcommand(command.name, command.description);
    CommandLine line{*subcommand};
    subcommand->parse_complete_callback([&chosen, run = command.declare(line)] { chosen = run; });
  }
  try {
    app.parse(*std::move(given));
  } catch (const CLI::ParseError& error) {
    return report(app, error);
  }
  return chosen();
} catch (const std::exception& error) {
  return os::failed({error.what()});
}

}  // namespace

void CommandLine::option(const Option& option, std::string& value) { add(command_, option, value); }

void CommandLine::option(const Option& option, std::optional<std::string>& value) { add(command_, option, value); }

void CommandLine::flag(const std::string& name, const std::string& meaning, bool& value) {
  command_.add_flag(name, value, meaning);
}

int run_command_line(int argc, const char* const* argv, std::span<const Command> commands) {
  const int exit_code = choose_and_run(argc, argv, commands);
  // The last line says why a service ended. A reader who does not take it does not keep the next one from starting.
  static_cast<void>(os::flush_log(std::chrono::seconds{1}));
  return exit_code;
}

int print(std::string_view result) {
  errno = 0;
  const bool written = std::fwrite(result.data(), 1, result.size(), stdout) == result.size() &&
                       std::fputc('\n', stdout) != EOF && std::fflush(stdout) == 0;
  if (written) return 0;
  return os::failed({fmt::format("stdout cannot be written to: {}", std::generic_category().message(errno))});
}

}  // namespace evictd::commands
