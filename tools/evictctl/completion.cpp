#include <CLI/App.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/offers.hpp"

namespace evictd::ctl {
namespace {

/// The scripts ask the program itself what may follow, so they are never behind it. Its answer has a word and its
/// meaning on each line, with a tab between; ":files" says that a file is wanted. They run what PATH has, and not what
/// is being typed, which nobody has decided to run yet.
const std::map<std::string, const char*> scripts{
    {"bash", R"sh(# Completion of evictctl for bash, made by "evictctl completion bash".
_evictctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} offers
  mapfile -t offers < <(evictctl complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ ${offers[0]-} == ':files' ]]; then
    [[ $cur == '=' ]] && cur=''
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  COMPREPLY=("${offers[@]%%$'\t'*}")
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _evictctl evictctl
)sh"},
    {"zsh", R"sh(#compdef evictctl
# Completion of evictctl for zsh, made by "evictctl completion zsh".
_evictctl() {
  local offer
  local -a offers
  for offer in ${(f)"$(evictctl complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    if [[ $offer == ':files' ]]; then
      compset -P '--*='
      _files
      return
    fi
    offers+=("${${offer//:/\\:}/$'\t'/:}")
  done
  if [[ $offers[1] == *= ]]; then _describe evictctl offers -S ''; else _describe evictctl offers; fi
}
if [[ $funcstack[1] == _evictctl ]]; then _evictctl "$@"; else compdef _evictctl evictctl; fi
)sh"},
    {"fish", R"sh(# Completion of evictctl for fish, made by "evictctl completion fish".
function __evictctl_offers
  set -l words (commandline -opc)
  set -l begun (commandline -ct)
  set -l offers (evictctl complete -- $words[2..-1] "$begun" 2>/dev/null)
  if test "$offers[1]" = ':files'
    set -l option (string match -r -- '^--[^=]+=' "$begun")
    printf '%s\n' "$option"(__fish_complete_path (string replace -- "$option" '' "$begun"))
  else if set -q offers[1]
    printf '%s\n' $offers
  end
end
complete -c evictctl -f -a '(__evictctl_offers)'
)sh"}};

/// What the scripts call.
void add_complete(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("complete", "What the last of these words may be completed to")->group("");
  const auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *words, "The words typed so far");
  context.on(*command, [&app, &context, words]() -> Result<void> {
    const auto offers = offers_for(app, context.choices, *words);
    if (offers.files) context.out << ":files\n";
    for (const auto& [word, description] : offers.words)
      context.out << word << (description.empty() ? "" : "\t" + description) << '\n';
    return {};
  });
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("completion", "Print the script by which a shell completes evictctl");
  const auto shell = std::make_shared<std::string>();
  auto* option = command->add_option("shell", *shell, "bash, zsh or fish")->type_name("SHELL")->required();
  context.choices.limit(*option, {"bash", "zsh", "fish"});
  context.on(*command, [&context, shell]() -> Result<void> {
    context.out << scripts.at(*shell);
    return {};
  });
  add_complete(app, context);
}

}  // namespace evictd::ctl
