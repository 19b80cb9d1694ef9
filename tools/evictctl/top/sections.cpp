#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "evictctl/answers.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"
#include "evictctl/top/screen.hpp"
#include "evictctl/top/sections.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

/// A heading with a rule to the right edge.
std::string section_title(const Screen& screen, const std::string& title, const std::string& right = {}) {
  Row row(screen);
  row.add(" ").add(title, Style::Strong).add(" ");
  const std::size_t end = right.empty() ? 0 : columns(right) + 2;
  while (row.room() > end) row.glyph("─", "-", Style::Faint);
  if (!right.empty()) row.add(" ").add(right, Style::Faint).add(" ");
  return row.text();
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string identity_line(const TopState& state, const Screen& screen, TimePoint now) {
  Row row(screen);
  row.add(" evictd", Style::Strong);
  if (state.status) {
    const auto& status = *state.status;
    row.add(" ").add(status.version());
    if (status.has_started()) row.add(", up ").add(duration_text(now - to_time_point(status.started())));
    row.add(fmt::format("  {}, {}", counted(status.pods(), "pod"), counted(status.evictions(), "eviction")));
    if (status.dry_run()) row.add("  ").add("DRY RUN", Style::Warning);
    if (!status.runtime().name().empty() && row.room() >= 40)
      row.add(fmt::format("  {} {}", status.runtime().name(), status.runtime().version()));
  }
  return row.right(time_text(now).substr(0, 8) + " ", Style::Faint).text();
}

/// What is wrong comes first: no agent, no runtime, who is going, pressure, what may become wrong.
std::string state_line(const TopState& state, const Screen& screen, TimePoint now) {
  Row row(screen);
  row.add(" ");
  const auto silent_for = duration_text(now - state.trouble_since);
  if (!state.trouble.empty())
    return row.add(fmt::format("NO AGENT for {}, trying again: {}", silent_for, state.trouble), Style::Bad).text();
  if (!state.status) return row.add("asking the agent", Style::Faint).text();
  const auto& status = *state.status;
  bool pressure = false;
  for (const auto& condition : status.conditions()) {
    if (!condition.status()) continue;
    row.add(pressure ? ", " : "").add(condition.type(), Style::Bad);
    pressure = true;
  }
  if (!pressure) row.add("no pressure", Style::Good);
  if (!status.runtime().endpoint().empty() && !status.runtime().connected())
    row.add("  ").add("NO RUNTIME", Style::Bad).add(" at ").add(status.runtime().endpoint());
  for (const auto& eviction : status.in_flight())
    row.add("  evicting ", Style::Warning)
        .add(key_of(eviction.pod()), Style::Strong)
        .add(fmt::format(" ({} to come)", bytes_text(eviction.bytes())));
  if (!status.staged().empty()) row.add("  held back: ", Style::Warning).add(status.staged(0), Style::Warning);
  if (!status.warnings().empty()) row.add("  warning: ", Style::Warning).add(status.warnings(0), Style::Warning);
  return row.text();
}

/// As ranking_rows() has them; what there is no room for is 0 wide. What is not needed for names is for the reasons.
std::vector<Column> ranking_columns(const v1::RankPodsResponse& ranking, std::size_t width) {
  std::vector<Column> result{right("#", 4),
                             left("POD"),
                             left("QOS", width >= 96 ? 10UZ : 0),
                             right("PRIORITY", width >= 110 ? 10UZ : 0),
                             right("USAGE", 8),
                             right("REQUEST", width >= 70 ? 7UZ : 0),
                             left("UID"),
                             left("WHY")};
  std::size_t taken = 0;
  for (const auto& column : result) taken += column.width > 0 ? column.width + 1 : 0;
  const std::size_t rest = width > taken ? width - taken : 1;
  std::size_t longest = 8;
  std::size_t longest_why = 3;
  for (const auto& pod : ranking.pods()) {
    longest = std::max(longest, columns(printable(key_of(pod.pod()))));
    longest_why = std::max(longest_why, columns(printable(pod.why())));
  }
  const auto why = std::min(longest_why, rest / (width >= 70 ? 2 : 3));
  const auto name = result[1].width = std::min(longest, rest > why + 1 ? rest - why - 1 : 1);
  result.back().width = rest > name + 1 ? rest - name - 1 : 0;
  return result;
}

std::string event_line(const v1::Event& event, const Screen& screen) {
  constexpr std::size_t time_of_day = 8;  // to the second
  Row row(screen);
  row.add(" ").add(time_text(to_time_point(event.time())).substr(0, time_of_day), Style::Faint).add(" ");
  if (screen.columns >= 60)
    row.cell(kind_text(event.kind()), 18, event_style(event.kind())).add(" ").add(event_text(event));
  else
    row.add(event_text(event), event_style(event.kind()));
  return row.text();
}

}  // namespace

Lines header_lines(const TopState& state, const Screen& screen, std::size_t rows, TimePoint now) {
  Lines lines;
  if (rows == 0) return lines;
  // With a single line what is wrong is more than who it is.
  if (rows > 1) lines.push_back(identity_line(state, screen, now));
  lines.push_back(state_line(state, screen, now));
  return lines;
}

Lines help_lines(const Screen& screen, std::size_t rows) {
  constexpr std::array<const char*, 19> help{
      " evictctl top: what evictd sees of this node, asked once a second",
      "",
      " q, Ctrl-C     quit",
      " up, down      choose the signal whose ranking is shown; also k, j, Tab",
      " ?             this help, and back",
      " Ctrl-L        draw everything anew",
      " Ctrl-Z        suspend",
      "",
      " A bar is what is in use of a signal's capacity. A mark in it is a threshold:",
      " a whole one is hard, pods go at once when the bar reaches it; a broken one",
      " is soft, they go when its grace period is over.",
      "",
      " EVICTS<  the threshold that comes next: below it pods go",
      " RATE     how fast the signal goes, over the last five seconds",
      " LEFT     until the next threshold is met, if it goes on like this; \"met\":",
      "          it is",
      "",
      " WHO GOES FIRST is the order in which evictd would evict the pods if the chosen",
      " signal were short now. Critical pods (-) never go.",
  };
  Lines lines;
  for (const auto* line : help)
    if (lines.size() < rows) lines.push_back(Row(screen).add(line).text());
  return lines;
}

Lines ranking_lines(const TopState& state, const Screen& screen, std::size_t rows, bool title) {
  Lines lines;
  if (rows == 0) return lines;
  const auto count = state.ranking.pods_size();
  const bool other = state.ranking.signal() != state.signal;  // the answer to a choice that was just made is to come
  const bool known = state.ranking_error.empty() && !other;
  lines.push_back(section_title(screen, "WHO GOES FIRST for " + state.signal,
                                known ? counted(static_cast<std::uint64_t>(count), "pod") : ""));
  if (rows == 1) return lines;
  if (!known || count == 0) {
    const auto why = !state.ranking_error.empty() ? state.ranking_error : other ? "asking" : "nobody";
    lines.push_back(
        Row(screen).add("     ").add(why, state.ranking_error.empty() ? Style::Faint : Style::Warning).text());
    return lines;
  }
  const auto columns = ranking_columns(state.ranking, screen.columns);
  const auto add = [&](const std::vector<Cell>& cells) { lines.push_back(Row(screen).cells(columns, cells).text()); };
  if (title && rows > 2) add(titles(columns));
  for (const auto& cells : ranking_rows(state.ranking))
    if (lines.size() < rows) add(cells);
  return lines;
}

Lines event_lines(const TopState& state, const Screen& screen, std::size_t rows) {
  Lines lines;
  if (rows == 0) return lines;
  lines.push_back(section_title(screen, "EVENTS"));
  const auto shown = std::min(rows - 1, state.events.size());
  for (auto event = state.events.end() - static_cast<std::ptrdiff_t>(shown); event != state.events.end(); ++event)
    lines.push_back(event_line(*event, screen));
  if (state.events.empty() && rows > 1) {
    const bool refused = !state.events_error.empty();
    const auto& why = refused ? state.events_error : "nothing yet";
    lines.push_back(Row(screen).add(" ").add(why, refused ? Style::Warning : Style::Faint).text());
  }
  return lines;
}

}  // namespace evictd::ctl
