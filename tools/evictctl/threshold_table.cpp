#include "evictctl/tables.hpp"

#include <fmt/format.h>

#include <string>

#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

/// "warning: …", a paragraph each.
void print_remarks(std::ostream& out, const char* label, const auto& lines, const TableLook& look,
                   Style style = Style::Plain) {
  for (const auto& line : lines)
    for (const auto& part : wrapped(printable(fmt::format("{}: {}", label, line)), look.width))
      out << look.paint(style, part) << '\n';
}

/// The place, where there is one to look at.
std::string origin_text(const v1::ThresholdSetting& setting) {
  return setting.origin().empty() || setting.source() == "derived" ? setting.source() : setting.origin();
}

}  // namespace

void print_thresholds(std::ostream& out, const v1::ThresholdSet& set, const TableLook& look) {
  Table table({{.title = "SIGNAL"},
               {.title = "EVICTS BELOW", .right = true},
               {.title = "THAT IS", .right = true},
               {.title = "GRACE"},
               {.title = "RECLAIM", .right = true},
               {.title = "FROM"}});
  for (const auto& setting : set.thresholds()) {
    const auto& threshold = setting.threshold();
    const auto grace = to_nanoseconds(threshold.grace_period());
    table.add({threshold.signal(), threshold.value(), amount_text(threshold.unit(), threshold.resolved()),
               grace.count() > 0 ? duration_text(grace) : "-", or_dash(threshold.minimum_reclaim()),
               origin_text(setting)});
  }
  table.print(out, look, "no thresholds: nothing is ever evicted for a shortage");
  out << "revision " << printable(set.revision()) << '\n';
  print_remarks(out, "held back", set.staged(), look, Style::Warning);
  print_remarks(out, "warning", set.warnings(), look, Style::Warning);
}

void print_update(std::ostream& out, const v1::UpdateThresholdsResponse& response, bool only_asked,
                  const TableLook& look) {
  if (response.changes().empty()) out << "nothing changes\n";
  print_remarks(out, only_asked ? "would change" : "changed", response.changes(), look);
  print_remarks(out, only_asked ? "would evict at once" : "evicts at once", response.evict_at_once(), look,
                Style::Warning);
  if (!response.saved_to().empty())
    out << (only_asked ? "would be saved to " : "saved to ") << printable(response.saved_to()) << '\n';
  print_remarks(out, "warning", response.thresholds().warnings(), look, Style::Warning);
  out << "revision " << printable(response.thresholds().revision()) << '\n';
}

void print_suggestion(std::ostream& out, const v1::SuggestThresholdsResponse& response, const TableLook& look) {
  out << fmt::format("{}={}\n", response.signal(), response.value());
  Table table({{.title = "BYTES", .right = true}, {.title = "FOR"}});
  for (const auto& step : response.steps())
    table.add({bytes_text(step.bytes()), fmt::format("{} ({})", step.what(), step.arithmetic())});
  table.print(out, look);
  out << fmt::format("seen in {}: {} evictions for memory\n", duration_text(to_nanoseconds(response.watched())),
                     response.crossings());
  print_remarks(out, "warning", response.warnings(), look, Style::Warning);
}

}  // namespace evictd::ctl
