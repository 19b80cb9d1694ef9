#include "config/nearest.hpp"

#include <algorithm>
#include <vector>

namespace evictd::config {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual matrix: a swap looks back two.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known) {
  std::optional<std::string_view> best;
  std::size_t least = 0;
  for (const auto candidate : known) {
    const auto limit = std::max<std::size_t>(2, candidate.size() / 3);
    // The length alone rules most words out, and any that is absurdly long.
    if (word.size() > candidate.size() + limit || candidate.size() > word.size() + limit) continue;
    const auto distance = edit_distance(word, candidate);
    if (distance > limit || distance >= candidate.size()) continue;
    if (!best || distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const auto meant = nearest(word, known);
  return meant ? "; did you mean \"" + std::string(*meant) + "\"?" : "";
}

}  // namespace evictd::config
