#include "admission/kernel_version.hpp"

#include "core/number.hpp"

namespace evictd::admission {
namespace {

/// The number that the text begins with, which is taken off it. "-0" is none.
std::optional<int> take_part(std::string_view& text) {
  return text.starts_with('-') ? std::nullopt : core::take_count<int>(text);
}

}  // namespace

std::optional<KernelVersion> parse_kernel_version(std::string_view release) {
  const auto first = release.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return std::nullopt;
  release.remove_prefix(first);
  if (release.starts_with('v')) release.remove_prefix(1);
  const auto major = take_part(release);
  if (!major || !release.starts_with('.')) return std::nullopt;
  release.remove_prefix(1);
  const auto minor = take_part(release);
  if (!minor) return std::nullopt;
  return KernelVersion{.major = *major, .minor = *minor};
}

}  // namespace evictd::admission
