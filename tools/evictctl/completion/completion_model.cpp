#include "evictctl/completion/completion_model.hpp"

#include <algorithm>

namespace evictd::ctl {
namespace {

bool names_a_file(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return type.starts_with("FILE") || type.starts_with("ADDRESS");
}

CompletionOption read_option(const CLI::Option& option, const Choices& choices) {
  CompletionOption result{.names = {}, .description = option.get_description()};
  for (const auto& name : option.get_snames()) result.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) result.names.push_back("--" + name);
  result.takes_value = option.get_items_expected_min() > 0;
  result.files = names_a_file(option);
  result.words = choices.of(option);
  return result;
}

void collect_paths(const CompletionCommand& command, const std::string& path, CompletionPaths& paths) {
  paths.emplace_back(path, &command);
  for (const auto& below : command.commands) collect_paths(below, path + "/" + below.name, paths);
}

}  // namespace

CompletionCommand completion_model(const CLI::App& app, const Choices& choices) {
  CompletionCommand result{.name = app.get_name(), .description = app.get_description()};
  for (const auto* option : app.get_options()) {
    if (option->nonpositional()) {
      result.options.push_back(read_option(*option, choices));
    } else {
      result.files = result.files || names_a_file(*option);
      const auto& words = choices.of(*option);
      result.words.insert(result.words.end(), words.begin(), words.end());
    }
  }
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    result.commands.push_back(completion_model(*command, choices));
  return result;
}

CompletionPaths completion_paths(const CompletionCommand& program) {
  CompletionPaths paths;
  collect_paths(program, "", paths);
  return paths;
}

std::vector<std::string> words_of(const std::string& path, const CompletionOption& option) {
  std::vector<std::string> words;
  for (const auto& name : option.names) words.push_back((path.empty() ? "*" : path) + ":" + name);
  return words;
}

std::string single_quoted(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return text;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

}  // namespace evictd::ctl
