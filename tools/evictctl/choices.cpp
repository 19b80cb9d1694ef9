#include "evictctl/choices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/eviction.hpp"
#include "core/signal.hpp"

namespace evictd::ctl {

void Choices::limit(CLI::Option& option, std::vector<std::string> words) {
  suggest(option, words);
  option.check([words = std::move(words)](const std::string& given) {
    if (std::ranges::find(words, given) != words.end()) return std::string{};
    return fmt::format("\"{}\" is none of {}", given, fmt::join(words, ", "));
  });
}

void Choices::suggest(const CLI::Option& option, std::vector<std::string> words) {
  words_.insert_or_assign(&option, std::move(words));
}

std::vector<std::string> Choices::of(const CLI::Option& option) const {
  const auto found = words_.find(&option);
  return found == words_.end() ? std::vector<std::string>{} : found->second;
}

std::vector<std::string> signal_names() {
  const auto names = core::signal_names();
  return {names.begin(), names.end()};
}

std::vector<std::string> cause_names() {
  const auto names = core::cause_names();
  return {names.begin(), names.end()};
}

}  // namespace evictd::ctl
