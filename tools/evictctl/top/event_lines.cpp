#include <algorithm>
#include <string>

#include "evictctl/event_table.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"
#include "evictctl/top/screen.hpp"
#include "evictctl/top/sections.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

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

Lines event_lines(const TopState& state, const Screen& screen, std::size_t rows) {
  Lines lines;
  if (rows == 0) return lines;
  lines.push_back(section_title(screen, "EVENTS"));
  const auto shown = std::min(rows - 1, state.events.size());
  for (auto event = state.events.end() - static_cast<std::ptrdiff_t>(shown); event != state.events.end(); ++event)
    lines.push_back(event_line(*event, screen));
  if (state.events.empty() && rows > 1) lines.push_back(Row(screen).add(" ").add("nothing yet", Style::Faint).text());
  return lines;
}

}  // namespace evictd::ctl
