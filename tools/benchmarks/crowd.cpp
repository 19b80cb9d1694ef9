#include "benchmarks/crowd.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

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
    : testbed_{testbed}, runtime_{testbed.containerd().socket()}, pods_{pods} {
  const auto images = testbed.directory() / "images";
  fs::create_directories(images / "snapshots");  // as containerd's overlayfs snapshotter has it
  runtime::v1::ImageFsInfoResponse filesystem;
  filesystem.add_image_filesystems()->mutable_fs_id()->set_mountpoint(images.native());
  runtime_.put(std::move(filesystem));
  for (const auto* method : {"StopContainer", "StopPodSandbox"}) runtime_.meanwhile(method, [this] { have_listed(); });
  runtime_.start();
  std::vector<std::string> names;
  for (std::size_t number = 1; number <= pods; ++number) names.push_back(fmt::format("crowd-{:04}", number));
  start(names, "hold 1Mi");
}

std::string Crowd::cgroup(const std::string& name) const {
  return testbed_.node().pod_cgroup(QosClass::BestEffort, name);
}

std::array<fs::path, 2> Crowd::container(const std::string& name) const {
  const auto own = cgroup(name) + '/' + name;
  return {testbed_.node().memory_directory(own), testbed_.node().pids_directory(own)};
}

void Crowd::start(const std::vector<std::string>& names, const std::string& arguments) {
  constexpr std::string_view enter = R"(echo $$ >"$0/cgroup.procs" && echo $$ >"$1/cgroup.procs")";
  const auto script = fmt::format(R"(while [ $# -gt 0 ]; do sh -c '{} && exec {} {}' "$1" "$2" & shift 2; done)", enter,
                                  testbed::load_program().native(), arguments);
  std::vector<std::string> command{"sh", "-c", script, "sh"};
  for (const auto& name : names) {
    testbed_.node().make(cgroup(name));
    for (const auto& directory : container(name)) {
      fs::create_directory(directory);
      command.push_back(directory);
    }
  }
  auto shell = testbed_.spawn(command);
  if (shell.wait(1min) != 0) testbed::fail("starting the pods' processes: " + shell.errors());
  testbed::wait_until("every pod holds its memory", 2min, [&] {
    return std::ranges::all_of(names,
                               [&](const auto& name) { return testbed_.node().memory_usage(cgroup(name)) >= 1 << 20; });
  });
  for (const auto& name : names) {
    runtime_.put_pod(name, cgroup(name));
    runtime_.tell(1, name);
  }
}

void Crowd::leave_free(std::int64_t bytes) {
  const bool v2 = testbed::cgroup_host().v2;
  node_memory_ = testbed_.node().memory_usage() + bytes;
  testbed::write_file(testbed_.node().memory_directory() / (v2 ? "memory.max" : "memory.limit_in_bytes"),
                      std::to_string(node_memory_));
}

Crowd::Victim::Victim(Crowd& crowd)
    : crowd_{crowd}, name_{fmt::format("victim-{}", ++crowd.victims_)}, size_{crowd.testbed_.directory() / name_} {
  testbed::replace_file(size_, "8Mi");
  crowd.start({name_}, "follow " + size_.native());
}

Crowd::Victim::~Victim() {
  if (is_there_) testbed::report_failure([this] { remove(); });
}

void Crowd::Victim::leave(const testbed::Agent& agent) {
  remove();
  agent.wait_for_pods(crowd_.pods_);
}

void Crowd::Victim::remove() {
  is_there_ = false;
  crowd_.runtime_.remove_sandbox(name_);
  crowd_.runtime_.remove_container(name_);
  crowd_.runtime_.tell(1, name_);
  testbed::wait_until("the pod's cgroups can be removed", 30s, [&] {
    const auto containers = crowd_.container(name_);
    for (const auto& directory : containers) {
      ::rmdir(directory.c_str());
      ::rmdir(directory.parent_path().c_str());
    }
    return std::ranges::none_of(containers, [](const auto& directory) { return fs::exists(directory.parent_path()); });
  });
}

void Crowd::Victim::wait_until_known(const testbed::Agent& agent) const {
  agent.wait_for_pods(crowd_.pods_ + 1);
  std::this_thread::sleep_for(500ms);
}

testbed::Event Crowd::Victim::grow(testbed::Agent& agent, std::string_view size) const {
  testbed::replace_file(size_, size);
  return agent.events().wait_for(testbed::Event::CLEANUP_DONE, key(), 60s);
}

}  // namespace bench
