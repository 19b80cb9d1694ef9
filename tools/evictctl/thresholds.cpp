#include <CLI/App.hpp>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "evictctl/ask.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/threshold_arguments.hpp"
#include "evictctl/threshold_table.hpp"

namespace evictd::ctl {
namespace {

/// Saving waits for the disk.
constexpr std::chrono::seconds changed_within{15};

using Stub = v1::EvictionService::Stub;

struct ThresholdOptions {
  ThresholdArguments arguments;
  bool replace = false;
  bool save = false;
  bool yes = false;
  bool dry_run = false;
  std::string revision;
};

Result<v1::UpdateThresholdsResponse> update(Context& context, const ThresholdOptions& options, bool apply_staged) {
  auto changes = threshold_changes(options.arguments);
  if (!changes) {
    context.bad_input = true;
    return std::unexpected(changes.error());
  }
  v1::UpdateThresholdsRequest request;
  request.mutable_changes()->Add(changes->begin(), changes->end());
  request.set_replace(options.replace);
  request.set_save(options.save);
  request.set_force(options.yes);
  request.set_validate_only(options.dry_run);
  request.set_expected_revision(options.revision);
  request.set_apply_staged(apply_staged);
  const auto print = [&](std::ostream& out, const v1::UpdateThresholdsResponse& response, const TableLook& look) {
    print_update(out, response, options.dry_run, look);
  };
  return ask(context, &Stub::UpdateThresholds, request, print,
             {.access = options.dry_run ? Access::Look : Access::Change, .within = changed_within});
}

void add_change_options(CLI::App& command, ThresholdOptions& options) {
  command.add_flag("--save", options.save, "Also write them to a drop-in, so that they outlive the agent");
  command.add_flag("-y,--yes", options.yes, "Though pods are evicted at once");
  command.add_flag("--dry-run", options.dry_run, "Only say what would change");
  command.add_option("--revision", options.revision, "Only if the thresholds are still at this revision (see get)")
      ->type_name("REVISION");
}

void add_set(CLI::App& parent, Context& context) {
  const auto options = std::make_shared<ThresholdOptions>();
  auto* command = parent.add_subcommand("set", "Change thresholds at once, without a restart");
  auto* assignments =
      command
          ->add_option("assignments", options->arguments.assignments,
                       "Such as memory.available=500Mi or nodefs.available=10%; nothing behind the sign removes it")
          ->type_name("SIGNAL=VALUE")
          ->required();
  auto beginnings = signal_names();
  for (auto& name : beginnings) name += '=';
  context.choices.suggest(*assignments, std::move(beginnings));
  command->add_flag("--soft", options->arguments.soft, "They are soft thresholds, which have a grace period");
  command->add_option("--grace", options->arguments.grace, "For how long a soft one is met before it acts")
      ->type_name("DURATION");
  command
      ->add_option("--min-reclaim", options->arguments.minimum_reclaim,
                   "How much more than the threshold is to be reclaimed; \"\": no more")
      ->type_name("AMOUNT");
  command->add_flag("--replace", options->replace, "All other thresholds go");
  add_change_options(*command, *options);
  context.on(*command, [&context, options] { return update(context, *options, false); });
}

void add_apply(CLI::App& parent, Context& context) {
  const auto options = std::make_shared<ThresholdOptions>();
  auto* command =
      parent.add_subcommand("apply", "Put in force what the files say and what was held back (needs --yes)");
  add_change_options(*command, *options);
  context.on(*command, [&context, options] { return update(context, *options, true); });
}

}  // namespace

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
