#include "node.hpp"

#include <evictd.grpc.pb.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "testbed/cgroup_host.hpp"
#include "testbed/channel.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace node_suite {

namespace fs = std::filesystem;
namespace v1 = evictd::v1;
using namespace std::chrono_literals;

namespace {

constexpr auto address = "unix:/run/evictd/evictd.sock";
const fs::path drop_in = "/etc/evictd/thresholds.d/50-test.yaml";
const fs::path agent_file = "/etc/evictd/agent.yaml";

template <class Call>
auto ask(Call call) {
  const auto stub = testbed::agent_stub(address);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + testbed::patient(20s));
  return call(*stub, context);
}

/// Ids of the pod: its sandbox and its containers.
std::vector<std::string> ids_of(const testbed::RunningPod& pod) {
  std::vector<std::string> ids{pod.sandbox};
  for (const auto& [name, id] : pod.containers) ids.push_back(id);
  return ids;
}

void add_lines_with(std::vector<std::string>& found, const std::string& text, std::string_view part,
                    std::string_view what) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) found.push_back(fmt::format("{}: {}", what, line));
}

/// A line each.
std::vector<std::string> traces_of(const testbed::RunningPod& pod) {
  std::vector<std::string> found;
  for (const auto pid : testbed::processes_in_cgroup(Slices::directory(pod.cgroup)))
    found.push_back(fmt::format("process {}", pid));
  const auto units = testbed::run({"systemctl", "list-units", "--all", "--plain", "--no-legend", "cri-containerd-*"});
  const auto mounts = testbed::read_file("/proc/self/mountinfo");
  std::string commands;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    auto command = testbed::try_read_file(entry.path() / "cmdline").value_or("");
    std::ranges::replace(command, '\0', ' ');
    if (command.find("containerd-shim") != std::string::npos) commands += command + "\n";
  }
  for (const auto& id : ids_of(pod)) {
    add_lines_with(found, units, id, "unit");
    add_lines_with(found, mounts, id, "mount");
    add_lines_with(found, commands, id, "shim");
    const auto task = fs::path{"/run/containerd/io.containerd.runtime.v2.task/k8s.io"} / id;
    if (fs::exists(task)) found.push_back(task);
  }
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(Slices::directory(pod.cgroup), gone))
    if (entry.is_directory(gone)) found.push_back(entry.path());
  return found;
}

}  // namespace

testbed::PodSpec pod(std::string name, evictd::core::QosClass qos, std::vector<std::string> load) {
  return {.name = std::move(name), .qos = qos, .containers = {{.args = std::move(load)}}};
}

Node::Node() : cri_{"/run/containerd/containerd.sock", slices_} { reconnect(); }

Node::~Node() {
  testbed::report_failure([&] {
    for (const auto& pod : pods_) {
      cri_.remove(pod);
      slices_.remove(pod.cgroup);
    }
    if (fs::remove(drop_in))
      testbed::wait_until("the thresholds are the kubelet's again", 60s, [&] { return status().passes() > 0; });
  });
}

testbed::RunningPod Node::run(testbed::PodSpec spec) {
  if (spec.uid.empty()) {
    spec.uid = testbed::read_file("/proc/sys/kernel/random/uuid");
    spec.uid.pop_back();
  }
  slices_.make(slices_.pod_cgroup(spec.qos, spec.uid));
  pods_.push_back(cri_.run_pod(spec));
  testbed::wait_until("evictd lists " + spec.name, 60s, [&] {
    const auto ranked = ranking();
    return std::ranges::any_of(ranked.pods(), [&](const auto& each) { return each.pod().uid() == spec.uid; }) ||
           events_->has(v1::Event::EVICTION_INTENDED, spec.name_space + "/" + spec.name);
  });
  return pods_.back();
}

void Node::leave(const testbed::RunningPod& pod) {
  std::erase_if(pods_, [&](const auto& each) { return each.uid == pod.uid; });
}

void Node::set_thresholds(const std::string& yaml) {
  const auto before = status().thresholds_revision();
  testbed::replace_file(drop_in, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + yaml);
  testbed::wait_until("the thresholds are in force: " + yaml, 60s,
                      [&] { return status().thresholds_revision() != before; });
}

void Node::configure(const std::string& agent_yaml) {
  testbed::replace_file(agent_file,  // An emulated runtime is slower than the defaults allow it to be.
                        "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\ncri: {timeout: 20s}\n"
                        "eviction: {stopTimeout: 20s, cleanupTimeout: 5m}\n" +
                            agent_yaml + "\n");
  testbed::run({"systemctl", "restart", "evictd"}, 2min);
  reconnect();
}

v1::NodeStatus Node::status() const {
  v1::NodeStatus status;
  const auto result =
      ask([&](auto& stub, grpc::ClientContext& context) { return stub.GetNodeStatus(&context, {}, &status); });
  if (!result.ok()) testbed::fail("GetNodeStatus: " + result.error_message());
  return status;
}

v1::RankPodsResponse Node::ranking() const {
  v1::RankPodsResponse ranking;
  const auto result =
      ask([&](auto& stub, grpc::ClientContext& context) { return stub.RankPods(&context, {}, &ranking); });
  if (!result.ok()) testbed::fail("RankPods: " + result.error_message());
  return ranking;
}

std::int64_t Node::available(std::string_view signal) const {
  const auto now = status();
  for (const auto& each : now.signals())
    if (each.signal() == signal) return each.available();
  testbed::fail(fmt::format("evictd does not measure {}", signal));
}

void Node::reconnect() {
  events_.reset();
  events_ = std::make_unique<testbed::EventStream>(testbed::channel_to(address));
  testbed::wait_until("evictd knows the runtime", 60s, [&] { return status().runtime().connected(); });
}

std::string Node::left_of(const testbed::RunningPod& pod) {
  std::vector<std::string> traces;
  static_cast<void>(testbed::comes_true(30s, [&] {
    traces = traces_of(pod);
    return traces.empty();
  }));
  return fmt::format("{}", fmt::join(traces, "\n"));
}

std::string property(const std::string& name, const std::string& unit) {
  auto value = testbed::run({"systemctl", "show", "--property", name, "--value", unit});
  while (value.ends_with('\n')) value.pop_back();
  return value;
}

pid_t main_pid() { return static_cast<pid_t>(std::stoi(property("MainPID"))); }

void wait_for_successor(pid_t predecessor) {
  testbed::wait_until("systemd has started another evictd", 60s, [&] {
    const auto pid = main_pid();
    return pid != 0 && pid != predecessor && property("ActiveState") == "active";
  });
}

std::string journal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"journalctl", "--no-pager", "--unit", "evictd"});
  return testbed::run(arguments);
}

}  // namespace node_suite
