#include <fmt/format.h>

#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <ostream>
#include <utility>

#include "core/error.hpp"
#include "evictctl/answers.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/threshold_arguments.hpp"

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

/// Saving waits for the disk.
constexpr std::chrono::seconds changed_within{15};

using Stub = v1::EvictionService::Stub;
using Request = v1::UpdateThresholdsRequest;

Result<v1::UpdateThresholdsResponse> update(Context& context, const Request& request) {
  const bool only_asked = request.validate_only();
  const auto print = [&](std::ostream& out, const v1::UpdateThresholdsResponse& response, const TableLook& look) {
    print_update(out, response, only_asked, look);
  };
  return ask(context, &Stub::UpdateThresholds, request, print,
             {.access = only_asked ? Access::Look : Access::Change, .within = changed_within});
}

Result<v1::UpdateThresholdsResponse> set(Context& context, Request request, const ThresholdArguments& arguments) {
  const auto changes = threshold_changes(arguments);
  context.bad_input = !changes;
  if (!changes) return std::unexpected(changes.error());
  request.mutable_changes()->Add(changes->begin(), changes->end());
  return update(context, request);
}

void add_change_options(CLI::App& command, const std::shared_ptr<Request>& request) {
  const auto add = [&](const char* name, void (Request::*set)(bool), const char* description) {
    command.add_flag_callback(name, [request, set] { (*request.*set)(true); }, description);
  };
  add("--save", &Request::set_save, "Also write them to a drop-in, so that they outlive the agent");
  add("-y,--yes", &Request::set_force, "Though pods are evicted at once");
  add("--dry-run", &Request::set_validate_only, "Only say what would change");
  command
      .add_option("--revision", *request->mutable_expected_revision(),
                  "Only if the thresholds are still at this revision (see get)")
      ->type_name("REVISION");
}

void add_set(CLI::App& parent, Context& context) {
  const auto arguments = std::make_shared<ThresholdArguments>();
  auto* command = parent.add_subcommand("set", "Change thresholds at once, without a restart");
  auto* assignments =
      command
          ->add_option("assignments", arguments->assignments,
                       "Such as memory.available=500Mi or nodefs.available=10%; nothing behind the sign removes it")
          ->type_name("SIGNAL=VALUE")
          ->required();
  auto beginnings = signal_names();
  for (auto& name : beginnings) name += '=';
  context.choices.suggest(*assignments, std::move(beginnings));
  command->add_flag("--soft", arguments->soft, "They are soft thresholds, which have a grace period");
  command->add_option("--grace", arguments->grace, "For how long a soft one is met before it acts")
      ->type_name("DURATION");
  command
      ->add_option("--min-reclaim", arguments->minimum_reclaim,
                   "How much more than the threshold is to be reclaimed; \"\": no more")
      ->type_name("AMOUNT");
  const auto request = std::make_shared<Request>();
  command->add_flag_callback("--replace", [request] { request->set_replace(true); }, "All other thresholds go");
  add_change_options(*command, request);
  context.on(*command, [&context, request, arguments] { return set(context, *request, *arguments); });
}

void add_apply(CLI::App& parent, Context& context) {
  auto* command =
      parent.add_subcommand("apply", "Put in force what the files say and what was held back (needs --yes)");
  const auto request = std::make_shared<Request>();
  add_change_options(*command, request);
  request->set_apply_staged(true);
  context.on(*command, [&context, request] { return update(context, *request); });
}

}  // namespace

void print_thresholds(std::ostream& out, const v1::ThresholdSet& set, const TableLook& look) {
  Table table({left("SIGNAL"), right("EVICTS BELOW"), right("THAT IS"), left("GRACE"), right("RECLAIM"), left("FROM")});
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
  out << fmt::format("{}={}\n", printable(response.signal()), printable(response.value()));
  Table table({right("BYTES"), left("FOR")});
  for (const auto& step : response.steps())
    table.add({bytes_text(step.bytes()), fmt::format("{} ({})", step.what(), step.arithmetic())});
  table.print(out, look);
  out << fmt::format("seen in {}: {} evictions for memory\n", duration_text(to_nanoseconds(response.watched())),
                     response.crossings());
  print_remarks(out, "warning", response.warnings(), look, Style::Warning);
}

void add_thresholds(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("thresholds", "Look at the eviction thresholds, change them, ask for advice");
  command->require_subcommand(0, 1);  // that one is missing is for run() to say, as of the program
  command->fallthrough();
  auto* get = command->add_subcommand("get", "The thresholds in force, and where each comes from");
  context.on(*get,
             [&context] { return ask(context, &Stub::GetThresholds, v1::GetThresholdsRequest(), print_thresholds); });
  add_set(*command, context);
  add_apply(*command, context);
  auto* suggest = command->add_subcommand(
      "suggest", "The smallest hard memory threshold that would have held, with the arithmetic");
  context.on(*suggest, [&context] {
    return ask(context, &Stub::SuggestThresholds, v1::SuggestThresholdsRequest(), print_suggestion);
  });
}

}  // namespace evictd::ctl
