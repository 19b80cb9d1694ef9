#include "admission/number_list.hpp"

#include <optional>

#include "core/number.hpp"
#include "core/printable.hpp"

namespace evictd::admission {
namespace {

/// More than any machine has; it keeps a range such as "0-4000000000" from being written out.
constexpr int highest = 65'535;

std::optional<int> parse_number(std::string_view text) {
  const auto number = core::whole_number<int>(text);
  return number && *number >= 0 && *number <= highest ? number : std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace

Result<std::set<int>> parse_number_list(std::string_view text) {
  std::set<int> numbers;
  auto rest = trimmed(text);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto part = rest.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    const bool more_expected = comma != std::string_view::npos && comma + 1 == rest.size();
    if (!first || !last || *last < *first || more_expected)
      return fail("\"" + core::printable(text) + "\" is no list of numbers such as 0-3,8");
    for (int number = *first; number <= *last; ++number) numbers.insert(numbers.end(), number);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return numbers;
}

std::string print_number_list(const std::set<int>& numbers) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last != first) text += "-" + std::to_string(last);
  }
  return text;
}

}  // namespace evictd::admission
