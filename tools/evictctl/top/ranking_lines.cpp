#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "evictctl/paint.hpp"
#include "evictctl/tables.hpp"
#include "evictctl/text.hpp"
#include "evictctl/top/screen.hpp"
#include "evictctl/top/sections.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

/// The widths of the columns; 0: there is no room for it.
struct RankingWidths {
  std::size_t pod;
  std::size_t qos = 0;
  std::size_t priority = 0;
  std::size_t usage = 8;
  std::size_t request = 0;
  std::size_t why;
};

/// What is not needed for names is for the reasons.
RankingWidths widths(const v1::RankPodsResponse& ranking, std::size_t width) {
  RankingWidths result{.pod = 8, .why = 0};
  if (width >= 70) result.request = 7;
  if (width >= 96) result.qos = 10;
  if (width >= 110) result.priority = 10;
  std::size_t taken = 4;
  for (const auto column : {result.usage, result.qos, result.priority, result.request})
    taken += column > 0 ? column + 1 : 0;
  const std::size_t rest = width > taken + 1 ? width - taken - 1 : 1;
  std::size_t longest = 8;
  std::size_t longest_why = 3;
  for (const auto& pod : ranking.pods()) {
    longest = std::max(longest, columns(printable(key_of(pod.pod()))));
    longest_why = std::max(longest_why, columns(printable(pod.why())));
  }
  const auto why = std::min(longest_why, rest / (width >= 70 ? 2 : 3));
  result.pod = std::min(longest, rest > why + 1 ? rest - why - 1 : 1);
  result.why = rest > result.pod + 1 ? rest - result.pod - 1 : 0;
  return result;
}

std::string pod_line(const v1::RankPodsResponse& ranking, int i, const std::string& place, const Screen& screen,
                     const RankingWidths& widths) {
  const auto& pod = ranking.pods(i);
  const auto style = pod.critical() ? Style::Faint : place == "1" ? Style::Strong : Style::Plain;
  Row row(screen);
  row.number(place, 4, style).add(" ").cell(key_of(pod.pod()), widths.pod, style);
  if (widths.qos > 0) row.add(" ").cell(pod.qos_class(), widths.qos, style);
  if (widths.priority > 0) row.add(" ").number(std::to_string(pod.priority()), widths.priority, style);
  row.add(" ").number(usage_text(ranking.unit(), pod), widths.usage, style);
  if (widths.request > 0) row.add(" ").number(request_text(pod), widths.request, style);
  if (widths.why > 0) row.add(" ").cell(pod.why(), widths.why, style);
  return row.text();
}

std::string ranking_titles(const Screen& screen, const RankingWidths& widths) {
  Row row(screen);
  row.number("#", 4, Style::Title).add(" ").cell("POD", widths.pod, Style::Title);
  if (widths.qos > 0) row.add(" ").cell("QOS", widths.qos, Style::Title);
  if (widths.priority > 0) row.add(" ").number("PRIORITY", widths.priority, Style::Title);
  row.add(" ").number("USAGE", widths.usage, Style::Title);
  if (widths.request > 0) row.add(" ").number("REQUEST", widths.request, Style::Title);
  if (widths.why > 0) row.add(" ").cell("WHY", widths.why, Style::Title);
  return row.text();
}

}  // namespace

Lines ranking_lines(const TopState& state, const Screen& screen, std::size_t rows, bool title) {
  Lines lines;
  if (rows == 0) return lines;
  const auto count = state.ranking.pods_size();
  const bool other = state.ranking.signal() != state.signal;  // the answer to a choice that was just made is to come
  const bool known = state.ranking_error.empty() && !other;
  lines.push_back(section_title(screen, "WHO GOES FIRST for " + state.signal,
                                known ? fmt::format("{} pod{}", count, count == 1 ? "" : "s") : ""));
  if (rows == 1) return lines;
  if (!known || count == 0) {
    const auto why = !state.ranking_error.empty() ? state.ranking_error : other ? "asking" : "nobody";
    lines.push_back(
        Row(screen).add("     ").add(why, state.ranking_error.empty() ? Style::Faint : Style::Warning).text());
    return lines;
  }
  const auto columns = widths(state.ranking, screen.columns);
  if (title && rows > 2) lines.push_back(ranking_titles(screen, columns));
  const auto numbers = places(state.ranking);
  for (int i = 0; i < count && lines.size() < rows; ++i)
    lines.push_back(pod_line(state.ranking, i, numbers[static_cast<std::size_t>(i)], screen, columns));
  return lines;
}

}  // namespace evictd::ctl
