#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"
#include "evictctl/top/screen.hpp"
#include "evictctl/top/sections.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

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

}  // namespace

std::string section_title(const Screen& screen, const std::string& title, const std::string& right) {
  Row row(screen);
  row.add(" ").add(title, Style::Strong).add(" ");
  const std::size_t end = right.empty() ? 0 : columns(right) + 2;
  while (row.room() > end) row.glyph("─", "-", Style::Faint);
  if (!right.empty()) row.add(" ").add(right, Style::Faint).add(" ");
  return row.text();
}

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

}  // namespace evictd::ctl
