#include "testbed/agent.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "testbed/calls.hpp"
#include "testbed/channel.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/kubelet_turn.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

using namespace std::chrono_literals;
namespace v1 = evictd::v1;

namespace testbed {

namespace {

/// "KEY: TIME" and the fields. Only where programs run slowly, and the fields do not say it themselves: everywhere else
/// evictd's own default holds, which is `usual`.
std::string with_patience(const std::string& key, std::chrono::seconds usual, const std::string& fields) {
  const auto time = patient(usual);
  if (time == usual || fields.find(key + ":") != std::string::npos) return fields;
  return fmt::format("{}: {}ms{}{}", key, time.count(), fields.empty() ? "" : ", ", fields);
}

/// A line "KEY: VALUE", unless the options have its key themselves.
std::string unless_given(const std::string& line, const std::string& options) {
  return options.contains(line.substr(0, line.find(':') + 1)) ? "" : line;
}

std::filesystem::path runtime_directory(const Testbed& testbed, const Agent::Options& options) {
  return options.runtime_directory.empty() ? testbed.directory() : options.runtime_directory;
}

}  // namespace

Agent::Agent(Testbed& testbed, const Options& options)
    : no_kubelet_{options.find_kubelet ? evictd::os::FileDescriptor{} : wait_for_no_kubelet()},
      socket_{runtime_directory(testbed, options) / "evictd.sock"},
      process_{start(testbed, options)} {
  if (options.connect) connect(options);
}

void Agent::connect(const Options& options) {
  channel_ = channel_to(address());
  const auto connected = [&] { return channel_->WaitForConnected(std::chrono::system_clock::now() + 100ms); };
  if (!comes_true(60s, [&] { return connected() || !process_.running(); }) || !connected())
    fail("evictd does not serve its API; it said: " + process_.errors());
  events_ = std::make_unique<EventStream>(channel_, options.kinds);
  if (options.wait_until_ready)
    wait_until("evictd knows the runtime", 60s, [&] { return status().runtime().connected(); });
}

Process Agent::start(Testbed& testbed, const Options& options) const {
  const auto agent_file = testbed.directory() / "agent.yaml";
  const auto kubelet_file = testbed.directory() / "kubelet.yaml";
  // Pods of the testbed are in "default" and say by annotations what they are, which counts.
  const auto pod_sources = unless_given("podSources: {trustedNamespaces: [\"*\"]}\n", options.sections);
  const auto state =
      unless_given(fmt::format("stateDirectory: \"{}\"\n", options.keep_history ? testbed.directory().native() : ""),
                   options.sections);
  // Logs that are nobody's any more are removed: never the machine's own.
  const auto pod_logs = unless_given(fmt::format("podLogsDir: {}\n", (testbed.directory() / "pod-logs").native()),
                                     options.thresholds + options.kubelet);
  replace_file(
      agent_file,
      fmt::format(
          R"(apiVersion: evictd.io/v1alpha1
kind: AgentConfiguration
runtimeDirectory: {}
node: {{cgroupRoot: {}{}}}
cri: {{{}}}
notifier: {{{}}}
eviction: {{{}}}
thresholds: {{dropIns: {}{}}}
)",
          runtime_directory(testbed, options).native(), testbed.node().cgroup(),
          options.node.empty() ? "" : ", " + options.node,
          with_patience("timeout", 2s, fmt::format("endpoint: \"{}\"", testbed.containerd().address())),
          options.notifier, with_patience("stopTimeout", 2s, with_patience("cleanupTimeout", 30s, options.eviction)),
          (testbed.directory() / "thresholds.d").native(),
          options.threshold_changes.empty() ? "" : ", " + options.threshold_changes) +
          state + pod_sources + options.sections);
  replace_file(kubelet_file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
                                 options.thresholds + "\n" + options.kubelet + "\n" + pod_logs);
  auto environment = options.environment;
  environment.emplace_back("LD_BIND_NOW=1");  // as evictd.service has it
  auto command = options.wrapper;
  command.insert(command.end(),
                 {options.program.empty() ? evictd_program() : options.program, "run", "--config", agent_file});
  if (!options.find_kubelet) command.insert(command.end(), {"--kubelet-config", kubelet_file});
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return testbed.spawn(command, {.environment = std::move(environment)});
}

v1::NodeStatus Agent::status() const { return Calls{channel_}.ask<v1::NodeStatus>(v1::GetNodeStatusRequest()); }

v1::AdmitResponse Agent::admit(const std::string& pod) const {
  v1::AdmitRequest request;
  request.set_pod(pod);
  return Calls{channel_}.ask<v1::AdmitResponse>(request);
}

void Agent::wait_for_pods(std::size_t count) const {
  wait_until(fmt::format("evictd knows {} pods", count), 60s, [&] { return status().pods() == count; });
}

void Agent::wait_for_pod(std::string_view uid) const {
  wait_until(fmt::format("evictd knows the pod {}", uid), 60s, [&] { return is_listed(uid); });
}

bool Agent::is_listed(std::string_view uid) const {
  v1::RankPodsResponse answer;
  return Calls{channel_}.make(v1::RankPodsRequest(), answer).ok() &&
         std::ranges::any_of(answer.pods(), [&](const auto& ranked) {
           return ranked.pod().uid() == uid && ranked.pod().namespace_() != "unlisted";
         });
}

std::size_t Agent::open_files() const {
  const auto directory = std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process_.pid()));
  return static_cast<std::size_t>(std::distance(begin(directory), end(directory)));
}

}  // namespace testbed
