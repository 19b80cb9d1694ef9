#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "evictctl/paint.hpp"
#include "evictctl/tables.hpp"
#include "evictctl/text.hpp"
#include "evictctl/top/screen.hpp"
#include "evictctl/top/sections.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

/// As ranking_cells() has them; what there is no room for is 0 wide. What is not needed for names is for the reasons.
std::vector<Column> ranking_columns(const v1::RankPodsResponse& ranking, std::size_t width) {
  std::vector<Column> result{{.title = "#", .right = true, .width = 4},
                             {.title = "POD"},
                             {.title = "QOS", .width = width >= 96 ? 10UZ : 0},
                             {.title = "PRIORITY", .right = true, .width = width >= 110 ? 10UZ : 0},
                             {.title = "USAGE", .right = true, .width = 8},
                             {.title = "REQUEST", .right = true, .width = width >= 70 ? 7UZ : 0},
                             {.title = "UID"},
                             {.title = "WHY"}};
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
  const auto columns = ranking_columns(state.ranking, screen.columns);
  const auto add = [&](const std::vector<Cell>& cells) { lines.push_back(Row(screen).cells(columns, cells).text()); };
  if (title && rows > 2) add(titles(columns));
  const auto numbers = places(state.ranking);
  for (int i = 0; i < count && lines.size() < rows; ++i)
    add(ranking_cells(state.ranking, i, numbers[static_cast<std::size_t>(i)]));
  return lines;
}

}  // namespace evictd::ctl
