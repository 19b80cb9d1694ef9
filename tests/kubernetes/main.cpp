#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>

#include "cluster.hpp"
#include "programs.hpp"
#include "support/skip.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/testbed.hpp"

namespace {

/// For whoever wants to look around, and for the test of what is left: a cluster that stands until it is told to go.
int hold() {
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGINT);
  sigaddset(&end, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &end, nullptr);
  kubernetes::Cluster cluster{{.testbed = {.node = {.memory_limit = std::int64_t{1} << 30}}}};
  const auto pod = cluster.run({.name = "chill", .args = {"hold", "8Mi"}});
  const auto& control_plane = cluster.control_plane();
  fmt::print("server {}\nauthority {}\ntoken {}\n", control_plane.server(),
             control_plane.authority().certificate().native(), cluster.admin().token());
  fmt::print("namespace {}\ncontainerd {}\ndirectory {}\ncgroup {}\n", cluster.name_space(),
             cluster.testbed().containerd().socket().native(), cluster.testbed().directory().native(),
             cluster.testbed().node().cgroup());
  fmt::print("pod-logs /var/log/pods/{}_{}_{}\n", cluster.name_space(), pod.name, pod.uid);
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&end, &signal);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what was said is heard, also of a run that is ended
  doctest::Context context(argc, argv);
  auto missing = testbed::missing_prerequisite();
  if (!missing) missing = kubernetes::missing_prerequisite();
  if (missing) {
    fmt::print("skipped: all Kubernetes tests: {}\n", *missing);
    return support::exit_code_skipped;
  }
  testbed::remove_leftovers();
  kubernetes::remove_left_pod_logs();
  if (argc == 2 && std::string_view(argv[1]) == "hold") return hold();
  return context.run();
} catch (const std::exception& error) {
  fmt::print(stderr, "kubernetes: {}\n", error.what());
  return 1;
}
