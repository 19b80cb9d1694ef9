#include "admission/kernel_version.hpp"

#include <charconv>
#include <system_error>

namespace evictd::admission {
namespace {

/// The number that the text begins with, which is taken off it.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<KernelVersion> parse_kernel_version(std::string_view release) {
  const auto first = release.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return std::nullopt;
  release.remove_prefix(first);
  if (release.starts_with('v')) release.remove_prefix(1);
  const auto major = take_number(release);
  if (!major || !release.starts_with('.')) return std::nullopt;
  release.remove_prefix(1);
  const auto minor = take_number(release);
  if (!minor) return std::nullopt;
  return KernelVersion{.major = *major, .minor = *minor};
}

}  // namespace evictd::admission
