#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "evictctl/address.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/format.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/table.hpp"

namespace evictd::ctl {

/// What all subcommands share.
struct Context {
  std::string address = "unix:///run/evictd/evictd.sock";
  TlsFiles tls{};  ///< for an address HOST:PORT
  Format format = Format::Table;
  bool wide = false;            ///< a table with all that there is, for wide terminals
  std::string colour = "auto";  ///< when to use it: "auto" (never in a pipe), "always" or "never"
  std::ostream& out;
  std::function<Result<void>()> chosen{};  ///< what the command line asks for
  bool denied = false;                     ///< it was answered, by a no: the exit code is 1, and there is no error
  bool bad_input = false;                  ///< it failed for what it was given: the exit code is 2
  Choices choices{};

  /// What the command does if it is given: a function without arguments that yields a Result.
  template <class Work>
  void on(CLI::App& command, Work work) {
    command.callback([this, work = std::move(work)] {
      chosen = [work]() -> Result<void> {
        if (auto done = work(); !done) return std::unexpected(std::move(done).error());
        return {};
      };
    });
  }
  /// For tables; other formats have no colours, nor has "auto" where NO_COLOR is set to anything.
  [[nodiscard]] Paint paint() const;
  /// How wide a table may be: as the terminal is, or as COLUMNS says. In a pipe 80 columns, or 160 for a wide table.
  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] TableLook table_look() const { return {.width = width(), .wide = wide, .paint = paint()}; }
};

/// The commands below it but for those without a group, which are for the shells.
[[nodiscard]] std::vector<const CLI::App*> shown_commands(const CLI::App& command);

/// One file each: what it asks for, and how the answer is shown. To add a subcommand: a new file, a line here and one
/// in command_line.cpp.
void add_admit(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_health(CLI::App& app, Context& context);
void add_pods(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_thresholds(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);

}  // namespace evictd::ctl
