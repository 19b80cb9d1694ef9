#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "evictctl/completion/completion_model.hpp"

namespace evictd::ctl {
namespace {

/// Whether the words so far name the command: "__fish_seen_subcommand_from thresholds; and … set".
std::string seen(const std::string& path) {
  std::string condition;
  for (std::size_t begin = 1; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    condition +=
        (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + path.substr(begin, end - begin));
    begin = end + 1;
  }
  return condition;
}

/// Whether the next word may be one of the commands below.
std::string expects_command(const std::string& path, const CompletionCommand& command) {
  if (path.empty()) return "__fish_use_subcommand";
  std::vector<std::string> names;
  for (const auto& below : command.commands) names.push_back(below.name);
  return fmt::format("{}; and not __fish_seen_subcommand_from {}", seen(path), joined(names));
}

std::string line_of(const std::string& path, const CompletionOption& option) {
  std::string line = "complete -c evictctl";
  if (!path.empty()) line += fmt::format(" -n '{}'", seen(path));
  for (const auto& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.takes_value) line += option.files ? " -r -F" : " -x";
  if (!option.words.empty()) line += fmt::format(" -a '{}'", joined(option.words));
  return line + fmt::format(" -d '{}'\n", single_quoted(option.description));
}

}  // namespace

std::string fish_completion(const CompletionCommand& program) {
  std::string script =
      "# Completion of evictctl for fish, made by \"evictctl completion fish\".\ncomplete -c evictctl -f\n";
  for (const auto& [path, command] : completion_paths(program)) {
    for (const auto& below : command->commands)
      script += fmt::format("complete -c evictctl -n '{}' -a {} -d '{}'\n", expects_command(path, *command), below.name,
                            single_quoted(below.description));
    if (!command->words.empty())
      script += fmt::format("complete -c evictctl -n '{}' -a '{}'\n", seen(path), joined(command->words));
    if (command->files) script += fmt::format("complete -c evictctl -n '{}' -F\n", seen(path));
    for (const auto& option : command->options) script += line_of(path, option);
  }
  return script;
}

}  // namespace evictd::ctl
