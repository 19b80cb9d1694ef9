#include "evictctl/top/view.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "evictctl/paint.hpp"
#include "evictctl/top/sections.hpp"

namespace evictd::ctl {
namespace {

/// From this height on there is room for headings of columns.
constexpr std::size_t comfortable_height = 20;

struct Heights {
  std::size_t header = 0;
  std::size_t signals = 0;
  std::size_t ranking = 0;
  std::size_t events = 0;
  bool comfortable = false;  ///< headings of columns, and a blank line before each part
};

/// Signals take what they need up to two fifths, the ranking and the events share the rest: what one does not need is
/// the other's.
Heights divide(const TopState& state, std::size_t rows) {
  const bool comfortable = rows >= comfortable_height;
  Heights heights{.comfortable = comfortable};
  heights.header = std::min<std::size_t>(rows, rows >= 8 ? 2 : 1);
  auto left = rows - heights.header;  // comfortable ones leave room for three blank lines
  const auto signals = state.status ? static_cast<std::size_t>(state.status->signals_size()) : 1;
  const std::size_t title = comfortable ? 1 : 0;
  heights.signals = std::min({signals + title, std::max<std::size_t>(1 + title, rows * 2 / 5), left});
  left -= heights.signals + (comfortable ? 3 : 0);
  const auto pods = std::max<std::size_t>(1, static_cast<std::size_t>(state.ranking.pods_size()));
  const auto events = std::max<std::size_t>(1, state.events.size()) + 1;
  // Half of what is left, or more where the events need less.
  heights.ranking = std::min(pods + 1 + title, std::max((left + 1) / 2, left - std::min(left, events)));
  heights.events = left - heights.ranking;
  return heights;
}

std::string footer(const TopState& state, const Screen& screen) {
  Row row(screen);
  const auto key = [&](std::string_view utf8, std::string_view ascii, std::string_view meaning) {
    row.add(" ").glyph(utf8, ascii, Style::Chosen).add(" ").add(meaning).add(" ");
  };
  key(" q ", " q ", "quit");
  if (state.help) {
    key(" ? ", " ? ", "back");
  } else {
    key(" ↑↓ ", " j k ", "signal");
    key(" ? ", " ? ", "help");
  }
  return row.text();
}

}  // namespace

std::vector<std::string> render(const TopState& state, const Screen& screen, TimePoint now) {
  std::vector<std::string> lines;
  if (screen.rows == 0 || screen.columns == 0) return lines;
  const auto append = [&](Lines more) { std::ranges::move(more, std::back_inserter(lines)); };
  const auto body = screen.rows - 1;
  if (state.help) {
    append(help_lines(screen, body));
  } else {
    const auto heights = divide(state, body);
    const auto part = [&](Lines more) {
      if (heights.comfortable) lines.emplace_back();
      append(std::move(more));
    };
    append(header_lines(state, screen, heights.header, now));
    part(signal_lines(state, screen, heights.signals, heights.comfortable));
    part(ranking_lines(state, screen, heights.ranking, heights.comfortable));
    part(event_lines(state, screen, heights.events));
  }
  lines.resize(body);
  lines.push_back(footer(state, screen));
  return lines;
}

void press(TopState& state, Key key) {
  if (key == Key::Help) state.help = !state.help;
  if ((key != Key::Up && key != Key::Down) || !state.status || state.status->signals().empty()) return;
  const auto& signals = state.status->signals();
  const auto found = std::ranges::find(signals, state.signal, &v1::SignalStatus::signal);
  const auto count = signals.size();
  const auto place = static_cast<int>(found - signals.begin()) + (key == Key::Down ? 1 : count - 1);
  state.signal = signals.Get(found == signals.end() ? 0 : place % count).signal();
}

}  // namespace evictd::ctl
