#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "evictctl/choices.hpp"

namespace evictd::ctl {

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

/// The commands below it but for those without a group, which are for the shells.
[[nodiscard]] std::vector<const CLI::App*> shown_commands(const CLI::App& command);

/// All that the program's declaration allows behind these words, the last of which is begun, or empty. The program's
/// own name is not among them. "--output=json" is one word, or three: bash parts it at the sign.
[[nodiscard]] Offers offers_for(const CLI::App& program, const Choices& choices, std::vector<std::string> words);

}  // namespace evictd::ctl
