// tools/bench: how quickly evictd acts, whether that is quick enough, what it costs, and whether it lasts. A bench
// asserts no times.
#include <fmt/format.h>

#include <exception>

#include "benchmarks/commands.hpp"

int main(int argc, char** argv) try {
  CLI::App app{"Measures evictd on real cgroups.", "tools/bench"};
  app.require_subcommand(1);
  bench::Commands commands{app};
  for (const auto add :
       {bench::add_latency, bench::add_oom, bench::add_brake, bench::add_trim, bench::add_reading, bench::add_scale,
        bench::add_path, bench::add_streams, bench::add_proxy, bench::add_starts, bench::add_cluster, bench::add_soak})
    add(commands);
  CLI11_PARSE(app, argc, argv);
  return commands.run();
} catch (const std::exception& error) {
  fmt::print(stderr, "bench: {}\n", error.what());
  return 1;
}
