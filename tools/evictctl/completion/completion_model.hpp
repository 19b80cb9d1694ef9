#pragma once
#include <CLI/App.hpp>
#include <string>
#include <utility>
#include <vector>

#include "evictctl/choices.hpp"

namespace evictd::ctl {

/// An option as completion needs to know it.
struct CompletionOption {
  std::vector<std::string> names;  ///< "-o", "--output"
  std::string description;
  bool takes_value = false;          ///< in the next word; one that may stand alone takes it behind a "=" only
  bool files = false;                ///< the value is a file's name
  std::vector<std::string> words{};  ///< that the value may be; empty: anything
};

/// A command, with those below it.
struct CompletionCommand {
  std::string name;
  std::string description;
  std::vector<CompletionOption> options{};
  std::vector<std::string> words{};  ///< for what stands there without an option
  bool files = false;                ///< or file names
  std::vector<CompletionCommand> commands{};
};

/// All that the program takes, read off its declaration.
[[nodiscard]] CompletionCommand completion_model(const CLI::App& app, const Choices& choices);

/// The commands with their paths: "" for the program itself, "/thresholds/set" below it.
using CompletionPaths = std::vector<std::pair<std::string, const CompletionCommand*>>;
[[nodiscard]] CompletionPaths completion_paths(const CompletionCommand& program);
/// How a script names an option behind a command: "/admit:-f", "/admit:--file". The program's own stand behind every
/// command: "*:--address".
[[nodiscard]] std::vector<std::string> words_of(const std::string& path, const CompletionOption& option);

/// For between single quotes: one line, in which a shell finds no quote that ends it.
[[nodiscard]] std::string single_quoted(std::string text);
/// With blanks, or whatever else, between.
[[nodiscard]] std::string joined(const std::vector<std::string>& words, const std::string& between = " ");

/// The scripts, one for each shell.
[[nodiscard]] std::string bash_completion(const CompletionCommand& program);
[[nodiscard]] std::string fish_completion(const CompletionCommand& program);
[[nodiscard]] std::string zsh_completion(const CompletionCommand& program);

}  // namespace evictd::ctl
