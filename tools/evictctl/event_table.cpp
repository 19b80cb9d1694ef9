#include "evictctl/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace evictd::ctl {
namespace {

/// As wide as the longest name of a kind, and as six digits of numbers.
const std::vector<Column>& event_columns() {
  static const std::vector<Column> columns{{.title = "SEQ", .right = true, .width = 6},
                                           {.title = "TIME", .width = 12},
                                           {.title = "EVENT", .width = 18},
                                           {.title = "WHAT"}};
  return columns;
}

}  // namespace

EventTable::EventTable(std::ostream& out, std::size_t width, TimePoint now)
    : out_(out), width_(width), day_(day_text(now)) {}

void EventTable::print(const v1::Event& event) {
  if (!std::exchange(begun_, true)) print_heading(out_, event_columns(), width_);
  const auto time = to_time_point(event.time());
  if (const auto day = day_text(time); day != day_) {
    out_ << "-- " << day << " --\n";
    day_ = day;
  }
  // A kind that this client is too old to know has no name.
  const auto& name = v1::Event::Kind_Name(event.kind());
  print_row(out_, event_columns(),
            {std::to_string(event.sequence()), time_text(time), name.empty() ? std::to_string(event.kind()) : name,
             event_text(event)},
            width_);
}

std::string event_text(const v1::Event& event) {
  std::string text = event.message();
  text.erase(text.find_last_not_of(' ') + 1);  // the kubelet's wording ends in a blank
  if (event.stages().empty()) return text;
  const auto last = std::ranges::max_element(event.stages(), {}, [](const auto& stage) { return stage.second; });
  const auto& source = event.wake().source();
  return fmt::format("{} [{}+{:.1f} ms]", text, source.empty() ? "" : source + " ",
                     static_cast<double>(last->second) / 1000);
}

}  // namespace evictd::ctl
