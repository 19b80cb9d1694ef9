// tools/bench: how quickly evictd acts, whether that is quick enough, what it costs, and whether it lasts. A bench
// asserts no times.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/brake.hpp"
#include "benchmarks/cluster.hpp"
#include "benchmarks/latency.hpp"
#include "benchmarks/oom.hpp"
#include "benchmarks/path.hpp"
#include "benchmarks/proxy.hpp"
#include "benchmarks/reading.hpp"
#include "benchmarks/scale.hpp"
#include "benchmarks/soak/soak.hpp"
#include "benchmarks/starts.hpp"
#include "benchmarks/steer.hpp"
#include "benchmarks/streams.hpp"
#include "benchmarks/trim.hpp"
#include "benchmarks/variant.hpp"
#include "core/duration.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/supervise.hpp"
#include "testbed/testbed.hpp"

namespace {

struct Given {
  int trials = 0;
  std::string output = "table";
  std::string plot;

  [[nodiscard]] bool json() const { return output == "json"; }
};

void add_output(CLI::App& command, Given& given) {
  command.add_option("-o,--output", given.output)->check(CLI::IsMember({"table", "json"}))->capture_default_str();
}

void add_common(CLI::App& command, Given& given, int trials, const char* what) {
  given.trials = trials;
  command.add_option("--trials", given.trials, what)->check(CLI::Range(1, 10'000))->capture_default_str();
  add_output(command, given);
}

void print(const std::string& text) { fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n"); }

/// The variants that a command was asked for.
std::vector<bench::Variant> variants_of(const std::vector<std::string>& names) {
  std::vector<bench::Variant> variants;
  for (const auto& name : names)
    if (const auto variant = bench::variant_named(name)) variants.push_back(*variant);
  if (!testbed::cgroup_host().v2 && std::ranges::any_of(variants, bench::is_of_v2))
    testbed::fail("sampler and fence are cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  return variants;
}

void add_variants(CLI::App& command, std::vector<std::string>& names, const std::vector<std::string>& known) {
  command
      .add_option(
          "--variants", names,
          "fast: evictd as it is, cri: with CRI alone, timer: with its timer alone; on cgroup v2 sampler, fence: "
          "with notifier.v2 so; hook, hook-hangs: with a hook before each kill")
      ->check(CLI::IsMember(known))
      ->capture_default_str();
}

void latency(const Given& given, const std::vector<std::string>& names) {
  std::ofstream plot;
  if (!given.plot.empty()) plot.open(given.plot);
  if (plot.fail()) testbed::fail(given.plot + " cannot be written to");
  const auto trials = bench::measure_latency(given.trials, variants_of(names));
  const auto summaries = bench::summarize(trials);
  print(given.json() ? bench::latency_json(summaries, trials) : bench::latency_table(summaries, given.trials));
  if (!plot.is_open()) return;
  plot << bench::latency_svg(summaries, trials) << std::flush;
  if (plot.fail()) testbed::fail(given.plot + " cannot be written to");
}

void oom(const Given& given, const std::vector<std::string>& names) {
  const auto results = bench::measure_oom(given.trials, variants_of(names));
  print(given.json() ? bench::oom_json(results) : bench::oom_table(results));
}

void steer(const Given& given) {
  const auto results = bench::measure_steer(given.trials);
  print(given.json() ? bench::steer_json(results) : bench::steer_table(results));
}

void brake(const Given& given, bench::BrakeOptions options) {
  options.runs = given.trials;
  const auto results = bench::measure_brake(options);
  print(given.json() ? bench::brake_json(results) : bench::brake_table(results, options));
}

void trim(const Given& given) {
  const auto results = bench::measure_trim(given.trials);
  print(given.json() ? bench::trim_json(results) : bench::trim_table(results));
}

void reading(const Given& given) {
  if (!testbed::cgroup_host().v2)
    testbed::fail("a tripwire is cgroup v2's, and this machine has its memory on v1: see tools/vm/run");
  const auto results = bench::measure_reading(given.trials);
  print(given.json() ? bench::reading_json(results) : bench::reading_table(results));
}

void scale(const Given& given, bench::ScaleOptions options) {
  options.evictions = given.trials;
  const auto results = bench::measure_scale(options);
  print(given.json() ? bench::scale_json(results) : bench::scale_table(results, options));
}

void path(const Given& given, bench::PathOptions options) {
  options.evictions = given.trials;
  const auto results = bench::measure_path(options);
  print(given.json() ? bench::path_json(results) : bench::path_table(results, options));
}

void streams(const Given& given, bench::StreamsOptions options) {
  options.trials = given.trials;
  const auto results = bench::measure_streams(options);
  print(given.json() ? bench::streams_json(results, options) : bench::streams_table(results, options));
}

void proxy(const Given& given, bench::ProxyOptions options) {
  options.calls = given.trials;
  const auto calls = bench::measure_proxy(options);
  print(given.json() ? bench::proxy_json(calls, options) : bench::proxy_table(calls, options));
}

void starts(const Given& given) {
  const bench::StartsOptions options{.pods = given.trials};
  const auto result = bench::measure_starts(options);
  print(given.json() ? bench::starts_json(result, options) : bench::starts_table(result, options));
}

/// Needs no cgroups, and leaves nothing behind.
int cluster(const Given& given, bench::ClusterOptions options) {
  options.evictions = std::min(options.evictions, options.pods);
  const auto result = bench::measure_cluster(options);
  print(given.json() ? bench::cluster_json(result, options) : bench::cluster_table(result, options));
  return 0;
}

int report_exceptions(const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench: {}\n", error.what());
    return 1;
  }
}

bool can_run() {
  const auto missing = testbed::missing_prerequisite();
  if (missing) fmt::print(stderr, "bench: {}\n", *missing);
  return !missing;
}

int run(const std::function<void()>& work) {
  if (!can_run()) return 1;
  return testbed::supervise([&work] {
    return report_exceptions([&work] {
      work();
      return 0;
    });
  });
}

/// 1: something that has to hold did not.
int soak(const Given& given, const bench::soak::Options& options) {
  if (!can_run()) return 1;
  return testbed::supervise_until_asked([&](const std::stop_token& asked) {
    return report_exceptions([&] {
      const auto result = bench::soak::run(options, asked);
      print(given.json() ? bench::soak::as_json(result, options) : bench::soak::as_table(result, options));
      return result.violations == 0 ? 0 : 1;
    });
  });
}

/// What the command line asks for; a command's callback sets it.
using Chosen = std::function<int()>;

void choose(CLI::App& command, Chosen& chosen, std::function<void()> work) {
  command.callback([&chosen, work = std::move(work)] { chosen = [work] { return run(work); }; });
}

void add_latency(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  auto* command =
      app.add_subcommand("latency", "from crossing a memory threshold to free memory, beside a bare kill loop");
  add_common(*command, *given, 20, "of each variant");
  command->add_option("--plot", given->plot, "an SVG file to draw the trials into");
  const auto variants = std::make_shared<std::vector<std::string>>(std::vector<std::string>{"fast", "cri", "floor"});
  add_variants(*command, *variants, {"fast", "cri", "timer", "sampler", "fence", "hook", "hook-hangs", "floor"});
  choose(*command, chosen, [given, variants] { latency(*given, *variants); });
}

void add_oom(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto variants = std::make_shared<std::vector<std::string>>(std::vector<std::string>{"fast", "cri", "timer"});
  auto* command = app.add_subcommand("oom", "how often the kernel's OOM killer is quicker");
  add_common(*command, *given, 50, "of each hog against each variant");
  add_variants(*command, *variants, {"fast", "cri", "timer", "sampler", "fence"});
  const auto steers = std::make_shared<bool>(false);
  command->add_flag("--steer", *steers,
                    "instead, whom the kernel takes while evictd is held back, with protection.steerOom and without");
  choose(*command, chosen, [given, variants, steers] { *steers ? steer(*given) : oom(*given, *variants); });
}

void add_brake(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  auto* command = app.add_subcommand(
      "brake", "how often a pod that must write at its end gets to, with eviction.brake and without");
  const auto options = std::make_shared<bench::BrakeOptions>();
  add_common(*command, *given, options->runs, "with the brake, and as many without");
  command->add_option("--threshold", options->threshold_mib, "memory.available below so many MiB evicts")
      ->check(CLI::Range(50, 500))
      ->capture_default_str();
  choose(*command, chosen, [given, options] { brake(*given, *options); });
}

void add_trim(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  auto* command =
      app.add_subcommand("trim", "what eviction.trim gives back, how quickly, and whether a pod goes all the same");
  add_common(*command, *given, 5, "with the trim, and as many without");
  choose(*command, chosen, [given] { trim(*given); });
}

void add_reading(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  auto* command = app.add_subcommand("reading", "what a tripwire costs a pod that only reads files; on cgroup v2");
  add_common(*command, *given, 10, "of 15 s with a tripwire, and as many without");
  choose(*command, chosen, [given] { reading(*given); });
}

void add_scale(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto options = std::make_shared<bench::ScaleOptions>();
  auto* command = app.add_subcommand("scale", "what evictd takes, at work and at rest, with more and more pods");
  add_common(*command, *given, options->evictions, "evictions at each size");
  command->add_option("--pods", options->pods, "the sizes")->check(CLI::Range(1, 5000))->capture_default_str();
  command->add_option("--idle", options->idle_seconds, "seconds at rest")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  choose(*command, chosen, [given, options] { scale(*given, *options); });
}

void add_path(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto options = std::make_shared<bench::PathOptions>();
  auto* command = app.add_subcommand("path",
                                     "what evictd does from its wake-up to the first signal: system calls, "
                                     "instructions, the longest gap, by stage");
  add_common(*command, *given, options->evictions, "evictions at each size");
  command->add_option("--pods", options->pods, "the sizes")->check(CLI::Range(1, 5000))->capture_default_str();
  choose(*command, chosen, [given, options] { path(*given, *options); });
}

void add_streams(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto options = std::make_shared<bench::StreamsOptions>();
  auto* command = app.add_subcommand("streams", "whether many subscribers and events make an eviction later");
  add_common(*command, *given, options->trials, "evictions in each situation");
  command->add_option("--subscribers", options->subscribers, "each with a connection of its own")
      ->check(CLI::Range(1, 20'000))
      ->capture_default_str();
  command->add_option("--rate", options->rate, "events a second")
      ->check(CLI::Range(20, 1'000'000))
      ->capture_default_str();
  command->add_option("--scheduler", options->scheduler, "how the deciding thread is scheduled")
      ->check(CLI::IsMember({"none", "nice", "roundRobin"}))
      ->capture_default_str();
  choose(*command, chosen, [given, options] { streams(*given, *options); });
}

void add_proxy(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto options = std::make_shared<bench::ProxyOptions>();
  auto* command = app.add_subcommand("proxy", "what evictd cri-proxy adds to a call");
  add_common(*command, *given, options->calls, "calls of each kind, each way");
  command->add_option("--pods", options->pods, "that containerd lists")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();
  choose(*command, chosen, [given, options] { proxy(*given, *options); });
}

void add_starts(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  auto* command = app.add_subcommand("starts", "how soon evictd knows a pod that the runtime has started");
  add_common(*command, *given, bench::StartsOptions{}.pods, "pods that start");
  choose(*command, chosen, [given] { starts(*given); });
}

void add_cluster(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto options = std::make_shared<bench::ClusterOptions>();
  auto* command =
      app.add_subcommand("cluster", "what many evictds cost one API server, at rest and when all is not well");
  command->add_option("--nodes", options->nodes, "each takes 4 open files")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--pods", options->pods, "of each node")->check(CLI::Range(1, 500))->capture_default_str();
  command->add_option("--evictions", options->evictions, "of each node in the storm; at most its pods")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  add_output(*command, *given);
  command->callback([&chosen, given, options] { chosen = [given, options] { return cluster(*given, *options); }; });
}

void add_soak(CLI::App& app, Chosen& chosen) {
  const auto given = std::make_shared<Given>();
  const auto options = std::make_shared<bench::soak::Options>(bench::soak::Options{.seed = std::random_device{}()});
  auto* command = app.add_subcommand("soak", "whether it lasts: hogs, pods, containerds and subscribers come and go");
  command
      ->add_option_function<std::string>(
          "--duration",
          [options](const std::string& text) {
            const auto duration = evictd::core::parse_duration(text);
            if (!duration || *duration < std::chrono::seconds{1})
              throw CLI::ValidationError("--duration", "\"" + text + "\" is no duration of a second or more");
            options->duration = std::chrono::duration_cast<std::chrono::milliseconds>(*duration);
          },
          "5m, 1h30m; Ctrl-C ends it before, with the figures so far")
      ->default_str("1h");
  command->add_option("--seed", options->seed, "of all that is random; none: a new one, which is told");
  command->add_option("--pods", options->pods, "that stand on the node")
      ->check(CLI::Range(5, 100))
      ->capture_default_str();
  command->add_option("--subscribers", options->subscribers, "that come and go")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  add_output(*command, *given);
  command->callback([&chosen, given, options] { chosen = [given, options] { return soak(*given, *options); }; });
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Measures evictd on real cgroups.", "tools/bench"};
  app.require_subcommand(1);
  Chosen chosen;
  add_latency(app, chosen);
  add_oom(app, chosen);
  add_brake(app, chosen);
  add_trim(app, chosen);
  add_reading(app, chosen);
  add_scale(app, chosen);
  add_path(app, chosen);
  add_streams(app, chosen);
  add_proxy(app, chosen);
  add_starts(app, chosen);
  add_cluster(app, chosen);
  add_soak(app, chosen);
  CLI11_PARSE(app, argc, argv);
  return chosen();
} catch (const std::exception& error) {
  fmt::print(stderr, "bench: {}\n", error.what());
  return 1;
}
