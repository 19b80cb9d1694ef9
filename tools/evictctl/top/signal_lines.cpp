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

/// How wide the name and the bar are, and the columns behind them: what there is no room for is 0 wide.
struct SignalColumns {
  std::size_t name;
  std::size_t bar = 0;
  std::vector<Column> numbers;
};

SignalColumns signal_columns(const TopState& state, std::size_t width) {
  std::size_t longest = 6;
  for (const auto& signal : state.status->signals()) longest = std::max(longest, columns(signal.signal()));
  SignalColumns result{.name = std::min<std::size_t>(longest, width >= 100  ? 27
                                                              : width >= 60 ? 22
                                                                            : 16),
                       .numbers = {{.title = "AVAIL", .right = true, .width = 7},
                                   {.title = "OF", .right = true, .width = width >= 100 ? 7UZ : 0},
                                   {.title = "EVICTS<", .right = true, .width = width >= 76 ? 7UZ : 0},
                                   {.title = "RATE", .right = true, .width = width >= 64 ? 9UZ : 0},
                                   {.title = "LEFT", .right = true, .width = 7}}};
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
  std::optional<std::int64_t> lowest;
  for (const auto& status : signal.thresholds())
    lowest = std::min(lowest.value_or(status.threshold().resolved()), status.threshold().resolved());
  return lowest ? amount(signal, *lowest) : "-";
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
