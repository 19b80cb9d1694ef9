#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evictctl/forecast.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"
#include "evictctl/top/screen.hpp"
#include "evictctl/top/sections.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

using namespace std::chrono_literals;

/// The widths of the columns; 0: there is no room for it. A blank lies before each.
struct SignalWidths {
  std::size_t name;
  std::size_t bar;
  std::size_t available = 7;
  std::size_t capacity = 0;
  std::size_t below = 0;
  std::size_t rate = 0;
  std::size_t left = 7;
};

SignalWidths widths(const TopState& state, std::size_t width) {
  std::size_t longest = 6;
  for (const auto& signal : state.status->signals()) longest = std::max(longest, columns(signal.signal()));
  SignalWidths result{.name = std::min<std::size_t>(longest, width >= 100 ? 27 : width >= 60 ? 22 : 16), .bar = 0};
  if (width >= 64) result.rate = 9;
  if (width >= 76) result.below = 7;
  if (width >= 100) result.capacity = 7;
  std::size_t taken = 2 + result.name;
  for (const auto column : {result.available, result.capacity, result.below, result.rate, result.left})
    taken += column > 0 ? column + 1 : 0;
  result.bar = width > taken + 1 ? width - taken - 1 : 0;
  return result;
}

std::string amount(const v1::SignalStatus& signal, std::int64_t value) {
  return is_counted(signal.unit()) ? count_text(static_cast<double>(value)) : bytes_text(value);
}

std::string available_text(const v1::SignalStatus& signal) {
  return signal.has_available() ? amount(signal, signal.available()) : "-";
}

struct LeftText {
  std::string text;
  Style style;
};

LeftText left_text(const Forecast& forecast) {
  if (forecast.hard_met) return {"met", Style::Bad};
  if (forecast.left && *forecast.left < 10s) return {duration_text(*forecast.left), Style::Bad};
  if (forecast.left && *forecast.left < 1min) return {duration_text(*forecast.left), Style::Warning};
  if (forecast.met) return {"met", Style::Warning};
  return {forecast.left ? duration_text(*forecast.left) : "-", Style::Plain};
}

/// The value of the threshold that comes next; of the last one where all are met.
std::string below_text(const v1::SignalStatus& signal, const Forecast& forecast) {
  if (forecast.next != nullptr) return amount(signal, forecast.next->threshold().resolved());
  std::optional<std::int64_t> lowest;
  for (const auto& status : signal.thresholds())
    lowest = std::min(lowest.value_or(status.threshold().resolved()), status.threshold().resolved());
  return lowest ? amount(signal, *lowest) : "-";
}

std::string signal_line(const v1::SignalStatus& signal, const Screen& screen, const SignalWidths& widths, bool chosen) {
  const auto ahead = forecast(signal);
  const auto [left, urgency] = left_text(ahead);
  const bool calm = urgency == Style::Plain;
  Row row(screen);
  if (chosen)
    row.glyph("▶", ">");
  else
    row.add(" ");
  row.cell(signal.signal(), widths.name, chosen ? Style::Chosen : Style::Plain).add(" ");
  if (widths.bar > 0) add_bar(row, signal, widths.bar, calm ? Style::Good : urgency);
  row.add(widths.bar > 0 ? " " : "").number(available_text(signal), widths.available, calm ? Style::Plain : urgency);
  if (widths.capacity > 0)
    row.add(" ").number(signal.has_capacity() ? amount(signal, signal.capacity()) : "-", widths.capacity);
  if (widths.below > 0) row.add(" ").number(below_text(signal, ahead), widths.below);
  if (widths.rate > 0) row.add(" ").number(rate_text(signal), widths.rate);
  row.add(" ").number(left, widths.left, urgency);
  return row.text();
}

std::string signal_titles(const Screen& screen, const SignalWidths& widths) {
  Row row(screen);
  row.add(" ").cell("SIGNAL", widths.name, Style::Title).add(" ").cell("IN USE", widths.bar, Style::Title);
  row.add(" ").number("AVAIL", widths.available, Style::Title);
  if (widths.capacity > 0) row.add(" ").number("OF", widths.capacity, Style::Title);
  if (widths.below > 0) row.add(" ").number("EVICTS<", widths.below, Style::Title);
  if (widths.rate > 0) row.add(" ").number("RATE", widths.rate, Style::Title);
  row.add(" ").number("LEFT", widths.left, Style::Title);
  return row.text();
}

/// Those that there is room for: without thresholds nothing comes of a signal, so these go first; of the rest the
/// chosen one is among them.
std::vector<const v1::SignalStatus*> shown(const TopState& state, std::size_t rows) {
  std::vector<const v1::SignalStatus*> signals;
  for (const auto& signal : state.status->signals()) signals.push_back(&signal);
  for (auto i = signals.size(); i > 0 && signals.size() > rows; --i)
    if (signals[i - 1]->thresholds().empty() && signals[i - 1]->signal() != state.signal)
      signals.erase(signals.begin() + static_cast<std::ptrdiff_t>(i - 1));
  if (signals.size() <= rows) return signals;
  const auto chosen = std::ranges::find(signals, state.signal, [](const auto* signal) { return signal->signal(); });
  const auto place = chosen == signals.end() ? 0 : static_cast<std::size_t>(chosen - signals.begin());
  const auto first = place < rows ? 0 : place - rows + 1;
  return {signals.begin() + static_cast<std::ptrdiff_t>(first),
          signals.begin() + static_cast<std::ptrdiff_t>(first + rows)};
}

}  // namespace

Lines signal_lines(const TopState& state, const Screen& screen, std::size_t rows, bool title) {
  Lines lines;
  if (!state.status || rows == 0) return lines;
  const auto columns = widths(state, screen.columns);
  if (title) lines.push_back(signal_titles(screen, columns));
  if (rows <= lines.size()) return lines;
  for (const auto* signal : shown(state, rows - lines.size()))
    lines.push_back(signal_line(*signal, screen, columns, signal->signal() == state.signal));
  return lines;
}

}  // namespace evictd::ctl
