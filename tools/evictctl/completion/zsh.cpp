#include <fmt/format.h>

#include <ranges>
#include <string>
#include <vector>

#include "evictctl/completion/completion_model.hpp"

namespace evictd::ctl {
namespace {

constexpr auto zsh_begins = R"(#compdef evictctl
# Completion of evictctl for zsh, made by "evictctl completion zsh".
_evictctl() {
  local cur=$words[CURRENT] prev=$words[CURRENT-1] at='' skip='' word i
  local -a offers
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $skip ]]; then
      skip=''
      continue
    fi
    case $at:$word in
)";

constexpr auto zsh_value_begins = R"(    esac
  done
  if [[ $cur == --*=* ]]; then
    prev=${cur%%=*}
    compset -P '*='
  fi
  case $at:$prev in
)";

constexpr auto zsh_ends = R"(  esac
}
if [[ $funcstack[1] == _evictctl ]]; then _evictctl "$@"; else compdef _evictctl evictctl; fi
)";

std::string zsh_pattern(const std::string& path, const CompletionOption& option) {
  return "(" + joined(words_of(path, option), "|") + ")";
}

std::string zsh_value(const CompletionOption& option) {
  if (option.files) return "_files; return";
  return option.words.empty() ? "return" : fmt::format("compadd -- {}; return", joined(option.words));
}

std::string offers_of(const std::vector<CompletionOption>& options) {
  std::string offers;
  for (const auto& option : options)
    for (const auto& name : option.names) offers += fmt::format(" '{}:{}'", name, single_quoted(option.description));
  return offers;
}

std::string zsh_words(const CompletionCommand& command) {
  std::string line;
  if (!command.words.empty()) line += fmt::format("compadd -- {}; ", joined(command.words));
  if (command.files) line += "_files; ";
  if (!command.commands.empty()) {
    line += "offers=(";
    for (const auto& below : command.commands)
      line += fmt::format(" '{}:{}'", below.name, single_quoted(below.description));
    line += "); _describe command offers; ";
  }
  return line;
}

}  // namespace

std::string zsh_completion(const CompletionCommand& program) {
  const auto paths = completion_paths(program);
  std::string script = zsh_begins;
  for (const auto& [path, command] : paths)
    for (const auto& option : command->options)
      if (option.takes_value) script += fmt::format("      {} skip=1 ;;\n", zsh_pattern(path, option));
  for (const auto& [path, command] : paths)
    for (const auto& below : command->commands)
      script += fmt::format("      ({0}:{1}) at={0}/{1} ;;\n", path, below.name);
  script += zsh_value_begins;
  for (const auto& [path, command] : paths | std::views::reverse)
    for (const auto& option : command->options)
      if (option.takes_value || !option.words.empty())
        script += fmt::format("    {} {} ;;\n", zsh_pattern(path, option), zsh_value(option));
  script += "  esac\n  case $at:$cur in\n";
  const auto common = offers_of(program.options);
  for (const auto& [path, command] : paths) {
    const auto own = command == &program ? "" : offers_of(command->options);
    script += fmt::format("    ({}:-*) offers=({}{}); _describe -o option offers ;;\n", path, own, common);
    script += fmt::format("    ({}:*) {};;\n", path, zsh_words(*command));
  }
  return script + zsh_ends;
}

}  // namespace evictd::ctl
