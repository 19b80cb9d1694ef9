#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "evictctl/completion/completion_model.hpp"

namespace evictd::ctl {
namespace {

constexpr auto bash_begins = R"(# Completion of evictctl for bash, made by "evictctl completion bash".
_evictctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at='' skip='' words='' word i
  # "--output=json" is three words here.
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ -n $skip ]]; then
      [[ $word == '=' ]] || skip=''
      continue
    fi
    case $at:$word in
)";

constexpr auto bash_files =
    R"(compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return)";

constexpr auto bash_ends = R"(    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _evictctl evictctl
)";

/// "/admit:-f | /admit:--file".
std::string bash_pattern(const std::string& path, const CompletionOption& option) {
  return joined(words_of(path, option), " | ");
}

std::string bash_value(const CompletionOption& option) {
  if (option.files) return bash_files;
  return option.words.empty() ? "return" : fmt::format("words='{}'", joined(option.words));
}

std::vector<std::string> names_of(const std::vector<CompletionOption>& options) {
  std::vector<std::string> names;
  for (const auto& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::string bash_words(const CompletionCommand& command) {
  auto words = command.words;
  for (const auto& below : command.commands) words.push_back(below.name);
  if (words.empty() && command.files) return bash_files;
  return fmt::format("words='{}'", joined(words));
}

}  // namespace

std::string bash_completion(const CompletionCommand& program) {
  const auto paths = completion_paths(program);
  std::string script = bash_begins;
  for (const auto& [path, command] : paths)
    for (const auto& option : command->options)
      if (option.takes_value) script += fmt::format("      {}) skip=1 ;;\n", bash_pattern(path, option));
  for (const auto& [path, command] : paths)
    for (const auto& below : command->commands)
      script += fmt::format("      {0}:{1}) at={0}/{1} ;;\n", path, below.name);
  script += "    esac\n  done\n  case $at:$prev in\n";
  // A command's own option comes before one of the program's that has the same name.
  for (const auto& [path, command] : paths | std::views::reverse)
    for (const auto& option : command->options)
      if (option.takes_value) script += fmt::format("    {}) {} ;;\n", bash_pattern(path, option), bash_value(option));
  script += "  esac\n  if [[ -z $words ]]; then\n    case $at:$cur in\n";
  const auto common = names_of(program.options);
  for (const auto& [path, command] : paths) {
    auto names = names_of(command->options);
    if (command != &program)
      for (const auto& name : common)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    script += fmt::format("      {}:-*) words='{}' ;;\n", path, joined(names));
    script += fmt::format("      {}:*) {} ;;\n", path, bash_words(*command));
  }
  return script + bash_ends;
}

}  // namespace evictd::ctl
