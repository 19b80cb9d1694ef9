#include "evictctl/event_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace evictd::ctl {
namespace {

/// As wide as the longest name of a kind, and as six digits of numbers.
const std::vector<Column> event_columns{{.title = "SEQ", .right = true, .width = 6},
                                        {.title = "TIME", .width = 12},
                                        {.title = "EVENT", .width = 18},
                                        {.title = "WHAT"}};

/// How long the part up to ": " is that both begin with; 0: there is none.
std::size_t common_beginning(const std::string& before, const std::string& after) {
  const auto colon = before.find(": ");
  if (colon == std::string::npos || after.compare(0, colon + 2, before, 0, colon + 2) != 0) return 0;
  return colon + 2;
}

/// What changed, where the message does not tell: "memory.available: 100Mi -> 500Mi" says it shorter than both lines.
std::string audit_text(const v1::Event& event) {
  const auto& audit = event.audit();
  std::string text = event.message();
  if (text.empty()) text = fmt::format("{}: {}: {}", audit.caller(), audit.call(), audit.outcome());
  if (audit.before_size() != audit.after_size()) return text;
  for (int i = 0; i < audit.before_size(); ++i) {
    const auto is_told = [&](const std::string& line) { return text.find(line) != std::string::npos; };
    if (audit.before(i) == audit.after(i) || is_told(audit.after(i)) || is_told(audit.before(i))) continue;
    const auto same = common_beginning(audit.before(i), audit.after(i));
    text += fmt::format("; {} -> {}", audit.before(i), audit.after(i).substr(same));
  }
  return text;
}

}  // namespace

EventTable::EventTable(std::ostream& out, const TableLook& look, TimePoint now)
    : out_(out), look_(look), day_(day_text(now)) {}

void EventTable::print(const v1::Event& event) {
  if (!std::exchange(begun_, true)) print_row(out_, event_columns, titles(event_columns), look_);
  const auto time = to_time_point(event.time());
  if (const auto day = day_text(time); day != day_) {
    out_ << "-- " << day << " --\n";
    day_ = day;
  }
  print_row(out_, event_columns,
            {std::to_string(event.sequence()),
             time_text(time),
             {kind_text(event.kind()), event_style(event.kind())},
             event_text(event)},
            look_);
}

std::string event_text(const v1::Event& event) {
  std::string text = event.has_audit() ? audit_text(event) : event.message();
  text.erase(text.find_last_not_of(' ') + 1);  // the kubelet's wording ends in a blank
  if (event.stages().empty()) return text;
  const auto last = std::ranges::max_element(event.stages(), {}, [](const auto& stage) { return stage.second; });
  const auto& source = event.wake().source();
  return fmt::format("{} [{}+{:.1f} ms]", text, source.empty() ? "" : source + " ",
                     static_cast<double>(last->second) / 1000);
}

std::string kind_text(v1::Event::Kind kind) {
  const auto& name = v1::Event::Kind_Name(kind);
  return name.empty() ? std::to_string(kind) : name;
}

Style event_style(v1::Event::Kind kind) {
  switch (kind) {
    case v1::Event::EVICTION_INTENDED:
    case v1::Event::EVICTION_FAILED: return Style::Bad;
    case v1::Event::EVICTION_DELAYED:
    case v1::Event::THRESHOLD_CROSSED:
    case v1::Event::SOURCE_DEGRADED:
    case v1::Event::GAP:
    case v1::Event::NODE_SHUTDOWN: return Style::Warning;
    default: return Style::Plain;
  }
}

}  // namespace evictd::ctl
