#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
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

/// How wide the name and the bar are, and the columns behind them: what there is no room for is 0 wide.
struct SignalColumns {
  std::size_t name;
  std::size_t bar = 0;
  std::vector<Column> numbers;
};

SignalColumns signal_columns(const TopState& state, std::size_t width) {
  std::size_t longest = 6;
  for (const auto& signal : state.status->signals()) longest = std::max(longest, columns(signal.signal()));
  SignalColumns result{
      .name = std::min<std::size_t>(longest, width >= 100  ? 27
                                             : width >= 60 ? 22
                                                           : 16),
      .numbers = {right("AVAIL", 7), right("OF", width >= 100 ? 7UZ : 0), right("EVICTS<", width >= 76 ? 7UZ : 0),
                  right("RATE", width >= 64 ? 9UZ : 0), right("LEFT", 7)}};
  std::size_t taken = 2 + result.name;
  for (const auto& column : result.numbers) taken += column.width > 0 ? column.width + 1 : 0;
  result.bar = width > taken + 1 ? width - taken - 1 : 0;
  return result;
}

std::string amount(const v1::SignalStatus& signal, std::int64_t value) {
  return is_counted(signal.unit()) ? count_text(static_cast<double>(value)) : bytes_text(value);
}

Cell left_cell(const Forecast& forecast) {
  if (forecast.hard_met) return {"met", Style::Bad};
  if (forecast.left && *forecast.left < 10s) return {duration_text(*forecast.left), Style::Bad};
  if (forecast.left && *forecast.left < 1min) return {duration_text(*forecast.left), Style::Warning};
  if (forecast.met) return {"met", Style::Warning};
  return forecast.left ? duration_text(*forecast.left) : "-";
}

/// The value of the threshold that comes next; of the last one where all are met.
std::string below_text(const v1::SignalStatus& signal, const Forecast& forecast) {
  if (forecast.next != nullptr) return amount(signal, forecast.next->threshold().resolved());
  if (signal.thresholds().empty()) return "-";
  const auto level = [](const v1::ThresholdStatus& status) { return status.threshold().resolved(); };
  return amount(signal, level(*std::ranges::min_element(signal.thresholds(), {}, level)));
}

std::string signal_line(const v1::SignalStatus& signal, const Screen& screen, const SignalColumns& columns,
                        bool chosen) {
  const auto ahead = forecast(signal);
  const auto left = left_cell(ahead);
  Row row(screen);
  if (chosen)
    row.glyph("▶", ">");
  else
    row.add(" ");
  row.cell(signal.signal(), columns.name, chosen ? Style::Chosen : Style::Plain);
  if (columns.bar > 0)
    add_bar(row.add(" "), signal, columns.bar, left.style == Style::Plain ? Style::Good : left.style);
  row.cells(columns.numbers, {{signal.has_available() ? amount(signal, signal.available()) : "-", left.style},
                              signal.has_capacity() ? amount(signal, signal.capacity()) : "-",
                              below_text(signal, ahead),
                              rate_text(signal),
                              left});
  return row.text();
}

std::string signal_titles(const Screen& screen, const SignalColumns& columns) {
  Row row(screen);
  row.add(" ").cell("SIGNAL", columns.name, Style::Title);
  if (columns.bar > 0) row.add(" ").cell("IN USE", columns.bar, Style::Title);
  return row.cells(columns.numbers, titles(columns.numbers)).text();
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

Lines signal_lines(const TopState& state, const Screen& screen, std::size_t rows, bool title) {
  Lines lines;
  if (!state.status || rows == 0) return lines;
  const auto columns = signal_columns(state, screen.columns);
  if (title) lines.push_back(signal_titles(screen, columns));
  if (rows <= lines.size()) return lines;
  for (const auto* signal : shown(state, rows - lines.size()))
    lines.push_back(signal_line(*signal, screen, columns, signal->signal() == state.signal));
  return lines;
}

}  // namespace evictd::ctl
