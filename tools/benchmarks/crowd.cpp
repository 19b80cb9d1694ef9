#include "benchmarks/crowd.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "core/pod.hpp"
#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace bench {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::core::QosClass;

Crowd::Crowd(testbed::Testbed& testbed, std::size_t pods)
    : testbed_{testbed}, runtime_{testbed.containerd().socket(), testbed.directory() / "images"} {
  std::vector<RuntimeStandIn::Pod> made;
  for (std::size_t number = 1; number <= pods; ++number) made.push_back(make(fmt::format("crowd-{:04}", number)));
  start(made, "hold 1Mi");
  for (const auto& pod : made) runtime_.add(pod);
}

void Crowd::add_victim(const std::string& name, const fs::path& file) {
  const auto pod = make(name);
  start({pod}, "follow " + file.native());
  runtime_.add(pod);
}

RuntimeStandIn::Pod Crowd::make(const std::string& name) {
  const auto cgroup = testbed_.node().pod_cgroup(QosClass::BestEffort, name);
  RuntimeStandIn::Pod pod{.name = name, .cgroup = cgroup, .directory = testbed_.node().memory_directory(cgroup)};
  fs::create_directory(pod.directory);
  if (testbed::cgroup_host().v2) testbed::write_file(pod.directory / "cgroup.subtree_control", "+memory +pids");
  fs::create_directory(container(pod));
  return pod;
}

fs::path Crowd::container(const RuntimeStandIn::Pod& pod) { return pod.directory / pod.name; }

void Crowd::start(const std::vector<RuntimeStandIn::Pod>& pods, const std::string& arguments) {
  const auto script =
      fmt::format(R"(for directory; do sh -c 'echo $$ >"$0/cgroup.procs" && exec {} {}' "$directory" & done)",
                  testbed::load_program().native(), arguments);
  std::vector<std::string> command{"sh", "-c", script, "sh"};
  for (const auto& pod : pods) command.push_back(container(pod));
  auto shell = testbed_.spawn(command);
  if (shell.wait(1min) != 0) testbed::fail("starting the pods' processes: " + shell.errors());
  testbed::wait_until("every pod holds its memory", 2min, [&] {
    return std::ranges::all_of(pods,
                               [&](const auto& pod) { return testbed_.node().memory_usage(pod.cgroup) >= 1 << 20; });
  });
}

void Crowd::remove(const std::string& name) {
  const auto directory = testbed_.node().memory_directory(testbed_.node().pod_cgroup(QosClass::BestEffort, name));
  runtime_.remove(name);
  testbed::wait_until("the pod's cgroups can be removed", 30s, [&] {
    ::rmdir((directory / name).c_str());
    ::rmdir(directory.c_str());
    return !fs::exists(directory);
  });
}

void Crowd::leave_free(std::int64_t bytes) {
  const bool v2 = testbed::cgroup_host().v2;
  testbed::write_file(testbed_.node().memory_directory() / (v2 ? "memory.max" : "memory.limit_in_bytes"),
                      fmt::format("{}", testbed_.node().memory_usage() + bytes));
}

}  // namespace bench
