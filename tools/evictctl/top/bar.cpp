#include "evictctl/top/sections.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evictctl/forecast.hpp"
#include "evictctl/paint.hpp"

namespace evictd::ctl {
namespace {

enum class Mark : std::uint8_t { None, Soft, Hard };

/// The part that is used when so much is available, 0 to 1.
double used_part(std::int64_t available, std::int64_t capacity) {
  return std::clamp(1 - static_cast<double>(available) / static_cast<double>(capacity), 0.0, 1.0);
}

std::vector<Mark> marks_of(const v1::SignalStatus& signal, std::size_t width) {
  std::vector<Mark> marks(width, Mark::None);
  for (const auto& status : signal.thresholds()) {
    const auto part = used_part(status.threshold().resolved(), signal.capacity());
    const auto place = std::min(width - 1, static_cast<std::size_t>(part * static_cast<double>(width)));
    marks[place] = std::max(marks[place], is_hard(status.threshold()) ? Mark::Hard : Mark::Soft);
  }
  return marks;
}

}  // namespace

void add_bar(Row& row, const v1::SignalStatus& signal, std::size_t width, Style fill) {
  width = std::min(width, row.room());
  if (width == 0) return;
  if (!signal.has_available() || signal.capacity() <= 0) {
    row.add(std::string(width, ' '));
    return;
  }
  constexpr std::array<std::string_view, 8> eighths{"·", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double used = used_part(signal.available(), signal.capacity()) * static_cast<double>(width);
  const auto marks = marks_of(signal, width);
  for (std::size_t i = 0; i < width; ++i) {
    const double here = std::clamp(used - static_cast<double>(i), 0.0, 1.0);
    const auto eighth = static_cast<std::size_t>(std::lround(here * 8));
    if (marks[i] == Mark::Hard)
      row.glyph("┃", "|", Style::Bad);
    else if (marks[i] == Mark::Soft)
      row.glyph("╎", ":", Style::Warning);
    else if (eighth == 8)
      row.glyph("█", "#", fill);
    else
      row.glyph(eighths[eighth], here >= 0.5 ? "#" : ".", eighth == 0 ? Style::Faint : fill);
  }
}

}  // namespace evictd::ctl
