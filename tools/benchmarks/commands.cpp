#include "benchmarks/commands.hpp"

#include "testbed/supervise.hpp"
#include "testbed/testbed.hpp"

namespace bench {

namespace {

bool can_run() {
  const auto missing = testbed::missing_prerequisite();
  if (missing) fmt::print(stderr, "bench: {}\n", *missing);
  return !missing;
}

}  // namespace

int supervised(const Work& work) {
  if (!can_run()) return 1;
  return testbed::supervise([&] { return work({}); });
}

int supervised_until_asked(const Work& work) { return can_run() ? testbed::supervise_until_asked(work) : 1; }

void variants(CLI::App& command, std::vector<std::string>& names, const std::vector<std::string>& known) {
  command
      .add_option(
          "--variants", names,
          "fast: evictd as it is, cri: with CRI alone, timer: with its timer alone; on cgroup v2 sampler, fence: "
          "with notifier.v2 so; hook, hook-hangs: with a hook before each kill")
      ->check(CLI::IsMember(known))
      ->capture_default_str();
}

}  // namespace bench
