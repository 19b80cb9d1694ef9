// tools/bench: how quickly evictd acts, whether that is quick enough, and what it costs. A bench asserts no times.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <fstream>
#include <functional>
#include <string>

#include "benchmarks/latency.hpp"
#include "benchmarks/supervise.hpp"
#include "testbed/failure.hpp"
#include "testbed/prerequisites.hpp"

namespace {

struct Given {
  int trials = 0;
  int idle_seconds = 20;
  std::string output = "table";
  std::string plot;

  [[nodiscard]] bool json() const { return output == "json"; }
};

void add_common(CLI::App& command, Given& given, int trials, const char* what) {
  given.trials = trials;
  command.add_option("--trials", given.trials, what)->check(CLI::Range(1, 10'000))->capture_default_str();
  command.add_option("-o,--output", given.output)->check(CLI::IsMember({"table", "json"}))->capture_default_str();
}

void print(const std::string& text) { fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n"); }

void latency(const Given& given) {
  std::ofstream plot;
  if (!given.plot.empty()) plot.open(given.plot);
  if (plot.fail()) testbed::fail(given.plot + " cannot be written to");
  const auto trials = bench::measure_latency(given.trials);
  const auto summaries = bench::summarize(trials);
  print(given.json() ? bench::latency_json(summaries, trials) : bench::latency_table(summaries, given.trials));
  if (plot.is_open()) plot << bench::latency_svg(summaries, trials);
}

int run(const std::function<void()>& work) {
  if (const auto missing = testbed::missing_prerequisite()) {
    fmt::print(stderr, "bench: {}\n", *missing);
    return 1;
  }
  return bench::supervise([&work] {
    try {
      work();
      return 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "bench: {}\n", error.what());
      return 1;
    }
  });
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Measures evictd on real cgroups.", "tools/bench"};
  app.require_subcommand(1);
  Given given[3];

  auto& one =
      *app.add_subcommand("latency", "from crossing a memory threshold to free memory, beside a bare kill loop");
  add_common(one, given[0], 20, "of each variant");
  one.add_option("--plot", given[0].plot, "an SVG file to draw the trials into");

  CLI11_PARSE(app, argc, argv);
  return run([&] { latency(given[0]); });
} catch (const std::exception& error) {
  fmt::print(stderr, "bench: {}\n", error.what());
  return 1;
}
