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
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "benchmarks/cluster.hpp"
#include "benchmarks/latency.hpp"
#include "benchmarks/oom.hpp"
#include "benchmarks/proxy.hpp"
#include "benchmarks/scale.hpp"
#include "benchmarks/soak/soak.hpp"
#include "benchmarks/streams.hpp"
#include "core/duration.hpp"
#include "testbed/failure.hpp"
#include "testbed/prerequisites.hpp"
#include "testbed/supervise.hpp"

namespace {

struct Given {
  int trials = 0;
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
  if (!plot.is_open()) return;
  plot << bench::latency_svg(summaries, trials) << std::flush;
  if (plot.fail()) testbed::fail(given.plot + " cannot be written to");
}

bench::Variant variant_named(const std::string& name) {
  if (name == "cri") return bench::Variant::cri;
  return name == "timer" ? bench::Variant::timer : bench::Variant::fast;
}

void oom(const Given& given, const std::vector<std::string>& names) {
  std::vector<bench::Variant> variants;
  for (const auto& name : names) variants.push_back(variant_named(name));
  const auto results = bench::measure_oom(given.trials, variants);
  print(given.json() ? bench::oom_json(results) : bench::oom_table(results));
}

void scale(const Given& given, bench::ScaleOptions options) {
  options.evictions = given.trials;
  const auto results = bench::measure_scale(options);
  print(given.json() ? bench::scale_json(results) : bench::scale_table(results, options));
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

/// Needs no cgroups, and leaves nothing behind.
int cluster(const std::string& output, const bench::ClusterOptions& options) {
  const auto result = bench::measure_cluster(options);
  print(output == "json" ? bench::cluster_json(result, options) : bench::cluster_table(result, options));
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
int soak(const std::string& output, const bench::soak::Options& options) {
  if (!can_run()) return 1;
  return testbed::supervise_until_asked([&](const std::stop_token& asked) {
    return report_exceptions([&] {
      const auto result = bench::soak::run(options, asked);
      print(output == "json" ? bench::soak::as_json(result, options) : bench::soak::as_table(result, options));
      return result.violations == 0 ? 0 : 1;
    });
  });
}

struct SoakCommand {
  CLI::App* command = nullptr;
  std::string output = "table";
  bench::soak::Options options{.seed = std::random_device{}()};
};

std::unique_ptr<SoakCommand> add_soak(CLI::App& app) {
  auto soak = std::make_unique<SoakCommand>();
  soak->command = app.add_subcommand("soak", "whether it lasts: hogs, pods, containerds and subscribers come and go");
  soak->command
      ->add_option_function<std::string>(
          "--duration",
          [&options = soak->options](const std::string& text) {
            const auto duration = evictd::core::parse_duration(text);
            if (!duration || *duration < std::chrono::seconds{1})
              throw CLI::ValidationError("--duration", "\"" + text + "\" is no duration of a second or more");
            options.duration = std::chrono::duration_cast<std::chrono::milliseconds>(*duration);
          },
          "5m, 1h30m; Ctrl-C ends it before, with the figures so far")
      ->default_str("1h");
  soak->command->add_option("--seed", soak->options.seed, "of all that is random; none: a new one, which is told");
  soak->command->add_option("--pods", soak->options.pods, "that stand on the node")
      ->check(CLI::Range(5, 100))
      ->capture_default_str();
  soak->command->add_option("--subscribers", soak->options.subscribers, "that come and go")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  soak->command->add_option("-o,--output", soak->output)
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  return soak;
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Measures evictd on real cgroups.", "tools/bench"};
  app.require_subcommand(1);

  Given for_latency;
  auto* latency_command =
      app.add_subcommand("latency", "from crossing a memory threshold to free memory, beside a bare kill loop");
  add_common(*latency_command, for_latency, 20, "of each variant");
  latency_command->add_option("--plot", for_latency.plot, "an SVG file to draw the trials into");

  Given for_oom;
  auto* oom_command = app.add_subcommand("oom", "how often the kernel's OOM killer is quicker");
  add_common(*oom_command, for_oom, 50, "of each hog against each variant");
  std::vector<std::string> variants{"fast", "cri", "timer"};
  oom_command->add_option("--variants", variants, "evictd as it is, with CRI alone, with its timer alone")
      ->check(CLI::IsMember({"fast", "cri", "timer"}))
      ->capture_default_str();

  Given for_scale;
  bench::ScaleOptions options;
  auto* scale_command = app.add_subcommand("scale", "what evictd takes, at work and at rest, with more and more pods");
  add_common(*scale_command, for_scale, options.evictions, "evictions at each size");
  scale_command->add_option("--pods", options.pods, "the sizes")->check(CLI::Range(1, 5000))->capture_default_str();
  scale_command->add_option("--idle", options.idle_seconds, "seconds at rest")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();

  Given for_streams;
  bench::StreamsOptions streams_options;
  auto* streams_command = app.add_subcommand("streams", "whether many subscribers and events make an eviction later");
  add_common(*streams_command, for_streams, streams_options.trials, "evictions in each situation");
  streams_command->add_option("--subscribers", streams_options.subscribers, "each with a connection of its own")
      ->check(CLI::Range(1, 20'000))
      ->capture_default_str();
  streams_command->add_option("--rate", streams_options.rate, "events a second")
      ->check(CLI::Range(20, 1'000'000))
      ->capture_default_str();
  streams_command->add_option("--scheduler", streams_options.scheduler, "evictd's protection.scheduler")
      ->check(CLI::IsMember({"none", "nice", "roundRobin"}))
      ->capture_default_str();

  Given for_proxy;
  bench::ProxyOptions proxy_options;
  auto* proxy_command = app.add_subcommand("proxy", "what evictd cri-proxy adds to a call");
  add_common(*proxy_command, for_proxy, proxy_options.calls, "calls of each kind, each way");
  proxy_command->add_option("--pods", proxy_options.pods, "that containerd lists")
      ->check(CLI::Range(1, 200))
      ->capture_default_str();

  std::string cluster_output = "table";
  bench::ClusterOptions for_cluster;
  auto* cluster_command =
      app.add_subcommand("cluster", "what many evictds cost one API server, at rest and when all is not well");
  cluster_command->add_option("--nodes", for_cluster.nodes, "each takes 4 open files")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  cluster_command->add_option("--pods", for_cluster.pods, "of each node")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  cluster_command->add_option("--evictions", for_cluster.evictions, "of each node in the storm; at most its pods")
      ->check(CLI::Range(1, 500))
      ->capture_default_str();
  cluster_command->add_option("-o,--output", cluster_output)
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();

  const auto for_soak = add_soak(app);

  CLI11_PARSE(app, argc, argv);
  if (for_soak->command->parsed()) return soak(for_soak->output, for_soak->options);
  if (cluster_command->parsed()) {
    for_cluster.evictions = std::min(for_cluster.evictions, for_cluster.pods);
    return cluster(cluster_output, for_cluster);
  }
  return run([&] {
    if (latency_command->parsed()) latency(for_latency);
    if (oom_command->parsed()) oom(for_oom, variants);
    if (scale_command->parsed()) scale(for_scale, options);
    if (streams_command->parsed()) streams(for_streams, streams_options);
    if (proxy_command->parsed()) proxy(for_proxy, proxy_options);
  });
} catch (const std::exception& error) {
  fmt::print(stderr, "bench: {}\n", error.what());
  return 1;
}
