#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/report.hpp"

namespace bench {

/// Measures and prints; returns the exit code. Whoever can end early does so when asked.
using Work = std::function<int(const std::stop_token&)>;

// Ways to run it. The first two need a machine that has what the testbed needs, and leave nothing behind.
[[nodiscard]] int supervised(const Work& work);
[[nodiscard]] int supervised_until_asked(const Work& work);
/// For what needs no cgroups.
[[nodiscard]] inline int alone(const Work& work) { return work({}); }

/// What help says of a command.
struct Words {
  const char* name;
  const char* help;
  const char* trials = nullptr;  ///< of its option --trials; null: it has none
};

/// The commands of tools/bench.
class Commands {
 public:
  explicit Commands(CLI::App& app) : app_{app} {}

  /// It measures, and `describe` adds its options but for --trials and the output's. `Asked`: nothing, or a
  /// std::stop_token for who can end early.
  template <class Options, class... Asked>
  void add(const Words& words, Report (*measure)(const Options&, const Asked&...),
           std::type_identity_t<void (*)(CLI::App& command, Options& options)> describe = nullptr,
           int (*run)(const Work&) = supervised);
  /// The one that the command line has; its exit code.
  [[nodiscard]] int run() const { return chosen_(); }

 private:
  CLI::App& app_;
  std::function<int()> chosen_;
};

/// An option: a whole number, or several.
void number(CLI::App& command, const char* name, auto& value, const char* what, int least, int most) {
  command.add_option(name, value, what)->check(CLI::Range(least, most))->capture_default_str();
}
/// The option --variants, with those that the bench knows.
void variants(CLI::App& command, std::vector<std::string>& names, const std::vector<std::string>& known);

template <class Options, class... Asked>
void Commands::add(const Words& words, Report (*measure)(const Options&, const Asked&...),
                   std::type_identity_t<void (*)(CLI::App& command, Options& options)> describe,
                   int (*run)(const Work&)) {
  auto* command = app_.add_subcommand(words.name, words.help);
  const auto options = std::make_shared<Options>();
  const auto output = std::make_shared<std::string>("table");
  if constexpr (requires { options->trials; }) number(*command, "--trials", options->trials, words.trials, 1, 10'000);
  if (describe != nullptr) describe(*command, *options);
  command->add_option("-o,--output", *output)->check(CLI::IsMember({"table", "json"}))->capture_default_str();
  const Work work = [=]([[maybe_unused]] const std::stop_token& asked) {
    try {
      const auto report = measure(*options, static_cast<const Asked&>(asked)...);
      const auto text = *output == "json" ? boost::json::serialize(report.json) : report.text;
      fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
      return report.exit_code;
    } catch (const std::exception& error) {
      fmt::print(stderr, "bench: {}\n", error.what());
      return 1;
    }
  };
  command->callback([this, work, run] { chosen_ = [work, run] { return run(work); }; });
}

// Each bench adds its command.
void add_latency(Commands& commands);
void add_oom(Commands& commands);
void add_brake(Commands& commands);
void add_trim(Commands& commands);
void add_reading(Commands& commands);
void add_scale(Commands& commands);
void add_path(Commands& commands);
void add_streams(Commands& commands);
void add_proxy(Commands& commands);
void add_starts(Commands& commands);
void add_cluster(Commands& commands);
void add_soak(Commands& commands);

}  // namespace bench
