#include <CLI/App.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/completions/scripts.hpp"

namespace evictd::ctl {
namespace {

/// A word that may be typed next, and what it means; empty where the word says it.
struct Offer {
  std::string word;
  std::string description{};
};

/// What a shell may complete the last word to.
struct Offers {
  std::vector<Offer> words{};
  bool files = false;  ///< the name of a file, and nothing else
};

/// Of the command, or else of the program, whose options may stand behind every command.
const CLI::Option* option_of(const CLI::App& program, const CLI::App& command, const std::string& name) {
  const auto* own = command.get_option_no_throw(name);
  return own != nullptr ? own : program.get_option_no_throw(name);
}

/// Where the words before the last one lead to.
struct Place {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  ///< whose value is next
};

Place follow(const CLI::App& program, const std::vector<std::string>& words) {
  Place place{.command = &program};
  for (const auto& word : words) {
    if (word == "=") continue;
    if (place.option != nullptr) {
      place.option = nullptr;
    } else if (word.starts_with('-')) {
      const auto* option = option_of(program, *place.command, word);
      // One that may stand alone takes its value behind a "=" only.
      if (option != nullptr && option->get_items_expected_min() > 0) place.option = option;
    } else {
      for (const auto* below : shown_commands(*place.command))
        if (below->get_name() == word) place.command = below;
    }
  }
  return place;
}

Offers values_of(const CLI::Option& option, const Choices& choices, const std::string& before = {}) {
  const auto type = option.get_type_name();
  Offers offers{.files = type.starts_with("FILE") || type.starts_with("ADDRESS")};
  for (const auto& word : choices.of(option)) offers.words.push_back({before + word});
  return offers;
}

Offers options_of(const CLI::App& program, const CLI::App& command) {
  Offers offers;
  const auto add = [&](const std::string& name, const CLI::Option& option) {
    if (std::ranges::find(offers.words, name, &Offer::word) == offers.words.end())
      offers.words.push_back({name, option.get_description()});
  };
  for (const auto* owner : {&command, &program})
    for (const auto* option : owner->get_options()) {
      for (const auto& name : option->get_snames()) add("-" + name, *option);
      for (const auto& name : option->get_lnames()) add("--" + name, *option);
    }
  return offers;
}

Offers words_of(const CLI::App& command, const Choices& choices) {
  Offers offers;
  for (const auto* option : command.get_options())
    if (!option->nonpositional()) offers = values_of(*option, choices);
  for (const auto* below : shown_commands(command))
    offers.words.push_back({below->get_name(), below->get_description()});
  return offers;
}

Offers all_offers(const CLI::App& program, const Choices& choices, const Place& place, const std::string& begun) {
  if (place.option != nullptr) return values_of(*place.option, choices);
  if (!begun.starts_with('-')) return words_of(*place.command, choices);
  const auto sign = begun.find('=');
  if (sign == std::string::npos) return options_of(program, *place.command);
  const auto* option = option_of(program, *place.command, begun.substr(0, sign));
  return option != nullptr ? values_of(*option, choices, begun.substr(0, sign + 1)) : Offers{};
}

/// All that the program's declaration allows behind these words, the last of which is begun, or empty. The program's
/// own name is not among them. "--output=json" is one word, or three: bash parts it at the sign.
Offers offers_for(const CLI::App& program, const Choices& choices, std::vector<std::string> words) {
  auto begun = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  if (begun == "=") begun.clear();
  auto offers = all_offers(program, choices, follow(program, words), begun);
  std::erase_if(offers.words, [&](const Offer& offer) { return !offer.word.starts_with(begun); });
  return offers;
}

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
    context.out << completion_scripts.at(*shell);
    return {};
  });
  add_complete(app, context);
}

}  // namespace evictd::ctl
