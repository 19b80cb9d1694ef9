#include "wake/psi_level.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

namespace evictd::wake {
namespace {

std::string_view kind(const PsiLevel& level) { return level.full ? "full" : "some"; }

}  // namespace

std::string PsiLevel::text() const {
  return fmt::format("{} {} in {}", kind(*this), core::to_string(stall), core::to_string(window));
}

std::string PsiLevel::command() const {
  const auto microseconds = [](core::Duration duration) {
    return std::chrono::ceil<std::chrono::microseconds>(duration).count();
  };
  return fmt::format("{} {} {}", kind(*this), microseconds(stall), microseconds(window));
}

PsiLevel PsiLevel::without_privilege() const {
  constexpr core::Duration unit = std::chrono::seconds(2);
  const auto longer = (window + unit - core::Duration{1}) / unit * unit;
  const auto scale = std::chrono::duration<double>(longer) / std::chrono::duration<double>(window);
  const auto scaled = std::chrono::duration<double, std::nano>(stall) * scale;
  return {.full = full, .stall = std::chrono::round<core::Duration>(scaled), .window = longer};
}

}  // namespace evictd::wake
