#include "evictctl/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "evictctl/address.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/format.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/text.hpp"

namespace evictd::ctl {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

void add_common_options(CLI::App& app, Context& context) {
  app.add_option("--address", context.address, "Where the agent listens: a unix socket, or HOST:PORT")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option("--ca", context.tls.ca, "Who may have signed the agent's certificate (PEM), for HOST:PORT")
      ->type_name("FILE");
  app.add_option("--cert", context.tls.certificate, "This client's certificate (PEM)")->type_name("FILE");
  app.add_option("--key", context.tls.key, "Its private key (PEM)")->type_name("FILE");
  auto* output =
      app.add_option_function<std::string>(
             "-o,--output",
             [&context](const std::string& name) {
               context.wide = name == "wide";
               context.format = name == "json" ? Format::Json : name == "yaml" ? Format::Yaml : Format::Table;
             },
             "table, wide (a table with more columns), json or yaml")
          ->type_name("FORMAT");
  context.choices.limit(*output, {"table", "wide", "json", "yaml"});
  auto* colour =
      app.add_option("--color", context.colour, "auto (on a terminal, unless NO_COLOR is set), always or never")
          ->type_name("WHEN");
  context.choices.limit(*colour, {"auto", "always", "never"});
}

int refuse(std::ostream& err, std::string_view why) {
  err << "evictctl: " << printable(why) << " (see evictctl --help)\n";
  return wrong_usage;
}

/// Of the program, or of the command that was given.
int missing_subcommand(const CLI::App& app, std::ostream& err) {
  const auto given = app.get_subcommands();
  const auto& command = given.empty() ? app : *given.front();
  std::vector<std::string> names;
  for (const auto* below : shown_commands(command)) names.push_back(below->get_name());
  err << fmt::format("evictctl: a subcommand is missing: {} (see evictctl {}--help)\n", fmt::join(names, ", "),
                     given.empty() ? "" : command.get_name() + " ");
  return wrong_usage;
}

}  // namespace

std::vector<const CLI::App*> shown_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* below) { return !below->get_group().empty(); });
}

Paint Context::paint() const {
  if (colour != "auto") return Paint{colour == "always"};
  const char* none = std::getenv("NO_COLOR");
  const bool unwanted = none != nullptr && *none != '\0';
  return Paint{&out == &std::cout && !unwanted && obeys_sequences()};
}

std::size_t Context::width() const {
  if (winsize size{}; ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* given = std::getenv("COLUMNS"))
    if (const auto columns = std::strtoul(given, nullptr, 10); columns > 0) return columns;
  return wide ? 160 : 80;
}

int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("Asks and watches evictd, the node-pressure eviction agent", "evictctl");
  app.set_version_flag("--version", "evictctl " EVICTD_VERSION);
  app.require_subcommand(0, 1);  // with (1), CLI11 would answer a misspelt one by "a subcommand is required"
  app.fallthrough();             // the common options may stand behind the subcommand, too

  Context context{.out = out};
  add_common_options(app, context);
  add_status(app, context);
  add_pods(app, context);
  add_thresholds(app, context);
  add_events(app, context);
  add_explain(app, context);
  add_top(app, context);
  add_admit(app, context);
  add_health(app, context);
  add_completion(app, context);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& told) {  // help and version are "errors" to CLI11, and no failure
    return app.exit(told, out, err);
  } catch (const CLI::ParseError& error) {
    return refuse(err, error.what());
  }
  if (!context.chosen) return missing_subcommand(app, err);
  if (const auto checked = check_address(context.address, context.tls); !checked)
    return refuse(err, checked.error().message);
  auto result = context.chosen();
  if (result && !out.flush()) result = fail("the standard output cannot be written to");
  if (result) return context.denied ? failed : 0;
  err << "evictctl: " << printable(result.error().message) << '\n';
  return context.bad_input ? wrong_usage : failed;
}

}  // namespace evictd::ctl
