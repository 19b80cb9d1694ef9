#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "support/skip.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/containerd_config.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/testbed.hpp"

namespace {

/// What the test of leftovers kills: another process with a testbed.
[[noreturn]] void hold_testbed() {
  testbed::Testbed bed;
  const auto pod = bed.cri().run_pod({.name = "orphan", .containers = {{.args = {"fork", "3"}}}});
  const auto agent = bed.spawn({"sleep", "600"});
  fmt::print("testbed {} {}\n", bed.directory().native(), bed.node().cgroup());
  std::fflush(stdout);
  for (;;) ::pause();
}

/// What the test of leftovers asks in another PID namespace.
int say_whether_leftover(std::string_view name) {
  fmt::print("{}\n", testbed::is_leftover(name) ? "yes" : "no");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "hold-testbed") hold_testbed();
  if (argc == 3 && std::string_view(argv[1]) == "is-leftover") return say_whether_leftover(argv[2]);

  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was said is heard, also of a run that is ended
  doctest::Context context(argc, argv);
  if (const auto missing = testbed::missing_prerequisite()) {
    fmt::print("skipped: all integration tests: {}\n", *missing);
    return support::exit_code_skipped;
  }
  // What has no meaning with the other version of cgroups is in a suite of its own, and so is what takes a containerd
  // of today.
  context.addFilter("test-suite-exclude", testbed::cgroup_host().v2 ? "cgroup v1" : "cgroup v2");
  if (testbed::containerd_version() < testbed::Version{1, 7}) context.addFilter("test-suite-exclude", "runtime events");
  if (testbed::containerd_version() < testbed::Version{2, 1}) context.addFilter("test-suite-exclude", "image volumes");
  return support::exit_code(context.run());
}
