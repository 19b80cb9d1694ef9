#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <ostream>
#include <string>

#include "core/error.hpp"
#include "evictctl/address.hpp"
#include "evictctl/format.hpp"

namespace evictd::ctl {

/// What all subcommands share.
struct Context {
  std::string address = "unix:///run/evictd/evictd.sock";
  TlsFiles tls{};  ///< for an address HOST:PORT
  Format format = Format::Table;
  std::ostream& out;
  std::function<Result<void>()> chosen{};  ///< what the command line asks for; a subcommand's callback sets it
  bool denied = false;                     ///< it was answered, by a no: the exit code is 1, and there is no error
  bool bad_input = false;                  ///< it failed for what it was given: the exit code is 2
};

/// One file each. To add a subcommand: a new file, a line here and one in command_line.cpp.
void add_admit(CLI::App& app, Context& context);
void add_events(CLI::App& app, Context& context);
void add_health(CLI::App& app, Context& context);
void add_status(CLI::App& app, Context& context);
void add_thresholds(CLI::App& app, Context& context);

}  // namespace evictd::ctl
