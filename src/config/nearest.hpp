#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace evictd::config {

/// How many letters must be inserted, removed, replaced or swapped with their neighbour to turn one word into the
/// other, upper and lower case alike: Damerau-Levenshtein, where no letter is touched twice.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known word that `word` was most likely meant to be: at most a third of its letters (but always two) away.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known);

/// "; did you mean "available"?" behind an error, or nothing where no known word is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace evictd::config
