// tools/bench: how quickly evictd acts, whether that is quick enough, what it costs, and whether it lasts. A bench
// asserts no times.
#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/benches.hpp"
#include "benchmarks/cluster.hpp"
#include "benchmarks/report.hpp"
#include "benchmarks/soak/soak.hpp"
#include "core/duration.hpp"
#include "testbed/supervise.hpp"
#include "testbed/testbed.hpp"

namespace {

/// Measures and prints; returns the exit code. Whoever can end early does so when asked.
using Work = std::function<int(const std::stop_token&)>;

bool can_run() {
  const auto missing = testbed::missing_prerequisite();
  if (missing) fmt::print(stderr, "bench: {}\n", *missing);
  return !missing;
}

int supervised(const Work& work) {
  if (!can_run()) return 1;
  return testbed::supervise([&] { return work({}); });
}

int supervised_until_asked(const Work& work) { return can_run() ? testbed::supervise_until_asked(work) : 1; }

/// For what needs no cgroups, and leaves nothing behind.
int alone(const Work& work) { return work({}); }

/// What the command line asks for; a command's callback sets it.
using Chosen = std::function<int()>;

/// A whole number, or several.
void number(CLI::App& command, const char* name, auto& value, const char* what, int least, int most) {
  command.add_option(name, value, what)->check(CLI::Range(least, most))->capture_default_str();
}

/// What help says of a command.
struct Words {
  const char* name;
  const char* help;
  const char* trials = nullptr;  ///< of its option --trials; null: it has none
};

/// A command: it measures, and `describe` adds its options but for --trials and the output's. `Asked`: nothing, or a
/// std::stop_token for who can end early.
template <class Options, class... Asked>
void add(CLI::App& app, Chosen& chosen, const Words& words, bench::Report (*measure)(const Options&, const Asked&...),
         std::type_identity_t<void (*)(CLI::App& command, Options& options)> describe = nullptr,
         int (*run)(const Work&) = supervised) {
  auto* command = app.add_subcommand(words.name, words.help);
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
  command->callback([&chosen, work, run] { chosen = [work, run] { return run(work); }; });
}

void variants(CLI::App& command, std::vector<std::string>& names, const std::vector<std::string>& known) {
  command
      .add_option(
          "--variants", names,
          "fast: evictd as it is, cri: with CRI alone, timer: with its timer alone; on cgroup v2 sampler, fence: "
          "with notifier.v2 so; hook, hook-hangs: with a hook before each kill")
      ->check(CLI::IsMember(known))
      ->capture_default_str();
}

void add_commands(CLI::App& app, Chosen& chosen) {
  add(app, chosen,
      {"latency", "from crossing a memory threshold to free memory, beside a bare kill loop", "of each variant"},
      bench::measure_latency, [](auto& command, auto& options) {
        command.add_option("--plot", options.plot, "an SVG file to draw the trials into");
        variants(command, options.variants,
                 {"fast", "cri", "timer", "sampler", "fence", "hook", "hook-hangs", "floor"});
      });
  add(app, chosen, {"oom", "how often the kernel's OOM killer is quicker", "of each hog against each variant"},
      bench::measure_oom, [](auto& command, auto& options) {
        variants(command, options.variants, {"fast", "cri", "timer", "sampler", "fence"});
        command.add_flag(
            "--steer", options.steers,
            "instead, whom the kernel takes while evictd is held back, with protection.steerOom and without");
      });
  add(app, chosen,
      {"brake", "how often a pod that must write at its end gets to, with eviction.brake and without",
       "with the brake, and as many without"},
      bench::measure_brake, [](auto& command, auto& options) {
        number(command, "--threshold", options.threshold_mib, "memory.available below so many MiB evicts", 50, 500);
      });
  add(app, chosen,
      {"trim", "what eviction.trim gives back, how quickly, and whether a pod goes all the same",
       "with the trim, and as many without"},
      bench::measure_trim);
  add(app, chosen,
      {"reading", "what a tripwire costs a pod that only reads files; on cgroup v2",
       "of 15 s with a tripwire, and as many without"},
      bench::measure_reading);
  add(app, chosen,
      {"scale", "what evictd takes, at work and at rest, with more and more pods", "evictions at each size"},
      bench::measure_scale, [](auto& command, auto& options) {
        number(command, "--pods", options.pods, "the sizes", 1, 5000);
        number(command, "--idle", options.idle_seconds, "seconds at rest", 1, 3600);
      });
  add(app, chosen,
      {"path",
       "what evictd does from its wake-up to the first signal: system calls, instructions, the longest gap, by stage",
       "evictions at each size"},
      bench::measure_path,
      [](auto& command, auto& options) { number(command, "--pods", options.pods, "the sizes", 1, 5000); });
  add(app, chosen,
      {"streams", "whether many subscribers and events make an eviction later", "evictions in each situation"},
      bench::measure_streams, [](auto& command, auto& options) {
        number(command, "--subscribers", options.subscribers, "each with a connection of its own", 1, 20'000);
        number(command, "--rate", options.rate, "events a second", 20, 1'000'000);
        command.add_option("--scheduler", options.scheduler, "how the deciding thread is scheduled")
            ->check(CLI::IsMember({"none", "nice", "roundRobin"}))
            ->capture_default_str();
      });
  add(app, chosen, {"proxy", "what evictd cri-proxy adds to a call", "calls of each kind, each way"},
      bench::measure_proxy,
      [](auto& command, auto& options) { number(command, "--pods", options.pods, "that containerd lists", 1, 200); });
  add(app, chosen, {"starts", "how soon evictd knows a pod that the runtime has started", "pods that start"},
      bench::measure_starts);
  add(
      app, chosen, {"cluster", "what many evictds cost one API server, at rest and when all is not well"},
      bench::report_cluster,
      [](auto& command, auto& options) {
        number(command, "--nodes", options.nodes, "each takes 4 open files", 1, 10'000);
        number(command, "--pods", options.pods, "of each node", 1, 500);
        number(command, "--evictions", options.evictions, "of each node in the storm; at most its pods", 1, 500);
      },
      alone);
  add(
      app, chosen, {"soak", "whether it lasts: hogs, pods, containerds and subscribers come and go"}, bench::soak::run,
      [](CLI::App& command, bench::soak::Options& options) {
        options.seed = std::random_device{}();
        command
            .add_option_function<std::string>(
                "--duration",
                [&options](const std::string& text) {
                  const auto duration = evictd::core::parse_duration(text);
                  if (!duration || *duration < std::chrono::seconds{1})
                    throw CLI::ValidationError("--duration", "\"" + text + "\" is no duration of a second or more");
                  options.duration = std::chrono::duration_cast<std::chrono::milliseconds>(*duration);
                },
                "5m, 1h30m; Ctrl-C ends it before, with the figures so far")
            ->default_str("1h");
        command.add_option("--seed", options.seed, "of all that is random; none: a new one, which is told");
        number(command, "--pods", options.pods, "that stand on the node", 5, 100);
        number(command, "--subscribers", options.subscribers, "that come and go", 1, 500);
      },
      supervised_until_asked);
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app{"Measures evictd on real cgroups.", "tools/bench"};
  app.require_subcommand(1);
  Chosen chosen;
  add_commands(app, chosen);
  CLI11_PARSE(app, argc, argv);
  return chosen();
} catch (const std::exception& error) {
  fmt::print(stderr, "bench: {}\n", error.what());
  return 1;
}
