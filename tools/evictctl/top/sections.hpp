#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "evictctl/top/screen.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {

// The parts of the screen; none has more lines than it is given.
using Lines = std::vector<std::string>;

/// Who the agent is, how it stands, and what is wrong.
[[nodiscard]] Lines header_lines(const TopState& state, const Screen& screen, std::size_t rows, TimePoint now);
/// A bar for each signal. With `title` the first line names the columns.
[[nodiscard]] Lines signal_lines(const TopState& state, const Screen& screen, std::size_t rows, bool title);
/// How much of a signal's capacity is in use, with a mark at each threshold: pods go once the bar reaches one. A hard
/// threshold's mark is whole, a soft one's is broken. Blank where the signal is not measured.
void add_bar(Row& row, const v1::SignalStatus& signal, std::size_t width, Style fill);
/// Who would go for the chosen signal. With `title` a line names the columns.
[[nodiscard]] Lines ranking_lines(const TopState& state, const Screen& screen, std::size_t rows, bool title);
/// What happened last, the newest at the bottom.
[[nodiscard]] Lines event_lines(const TopState& state, const Screen& screen, std::size_t rows);
[[nodiscard]] Lines help_lines(const Screen& screen, std::size_t rows);

}  // namespace evictd::ctl
