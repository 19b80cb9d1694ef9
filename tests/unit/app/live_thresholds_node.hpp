#pragma once
#include <evictd.pb.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/loop.hpp"
#include "agent/recorder.hpp"
#include "app/configuration.hpp"
#include "app/live_thresholds.hpp"
#include "core/threshold.hpp"
#include "cri/run.hpp"
#include "events/event_log.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"

namespace evictd::app::live_thresholds_test {

using fixture::value_of;

enum class Kubelet : bool { Named, LookedFor };

/// evictd's files and the kubelet's, below one directory, and a directory that stands for /proc.
struct Files : fixture::Tree {
  explicit Files(Kubelet kubelet) : fixture::Tree{fixture::dir("proc")} {
    agent_says("10s");
    kubelet_says("1Gi");
    names.agent = path("agent.yaml").native();
    if (kubelet == Kubelet::Named) names.kubelet = path("kubelet.yaml").native();
  }
  void agent_says(const std::string& cri_timeout) const {
    const auto at = [this](const char* name) { return path(name).native(); };
    write("agent.yaml", "apiVersion: evictd.io/v1alpha1\nkind: AgentConfiguration\nstateDirectory: " + at("state") +
                            "\nruntimeDirectory: " + at("run") + "\nnode:\n  procMount: " + at("proc") +
                            "\nthresholds:\n  dropIns: \"" + drop_ins + "\"\ncri:\n  timeout: " + cri_timeout +
                            "\nlog:\n  level: " + log_level + "\n");
  }
  void drop_in_says(const std::string& directory, const std::string& memory_available) const {
    std::filesystem::create_directories(path(directory));
    write(directory + "/10.yaml",
          "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: " +
              memory_available + "}\n");
  }
  /// At once: whoever reads it meanwhile sees all of one or the other.
  void kubelet_says(const std::string& memory_available) const {
    write("kubelet.yaml.new",
          "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nevictionHard: {memory.available: " +
              memory_available + "}\n");
    std::filesystem::rename(path("kubelet.yaml.new"), path("kubelet.yaml"));
  }
  /// A kubelet runs with that file, and with a socket of this tree for the runtime's if one is given. In another
  /// container than evictd nobody can tell which file that is.
  void kubelet_runs(bool elsewhere, const std::string& runtime = {}) const {
    const auto process = "proc/" + std::to_string(::getpid());  // of one that does not end
    std::filesystem::create_directories(path("proc/1"));
    std::filesystem::create_directories(path(process));
    write(process + "/comm", "kubelet\n");
    auto command = std::string("kubelet\0--config\0", 17) + path("kubelet.yaml").native() + '\0';
    if (!runtime.empty()) command += "--container-runtime-endpoint=" + endpoint(runtime) + '\0';
    write(process + "/cmdline", command);
    write(process + "/cgroup", "0::/system.slice/kubelet.service\n");
    write(process + "/status", "Name:\tkubelet\nUid:\t0\t0\t0\t0\nNSpid:\t812\n");
    write("proc/1/mountinfo", "24 1 0:24 / / rw - ext4 /dev/vda rw\n");
    write(process + "/mountinfo",
          elsewhere ? "31 1 0:31 / / rw - overlay overlay rw\n" : "24 1 0:24 / / rw - ext4 a rw\n");
  }
  void kubelet_ends() const { remove("proc/" + std::to_string(::getpid())); }
  [[nodiscard]] std::string endpoint(const std::string& socket) const { return "unix://" + path(socket).native(); }

  ConfigurationFiles names;
  std::string drop_ins{};  // as agent_says() has it
  std::string log_level{"info"};
};

/// The loop, whose thresholds come from the files. Its pod "a" has to go where 50 MiB are available.
struct Node {
  explicit Node(Kubelet kubelet, std::optional<std::string> watch_only = {})
      : Node{std::make_shared<Files>(kubelet), std::move(watch_only)} {}
  /// As evictd starts anew on a machine.
  explicit Node(std::shared_ptr<Files> of_machine, std::optional<std::string> watch_only = {}, bool dry = false)
      : machine{std::move(of_machine)}, configuration{read(files, std::move(watch_only))}, dry_run{dry} {
    files.agent_says("10s");
    loop.start();
  }
  /// As the start reads it. `watch_only`: what it says where the kubelet's file could not be read in time; it cannot be
  /// read afterwards either, until the kubelet says something.
  static Configuration read(const Files& files, std::optional<std::string> watch_only) {
    auto configuration = value_of(load_configuration(files.names));
    if (watch_only) files.remove("kubelet.yaml");
    configuration.watch_only = std::move(watch_only);
    return configuration;
  }
  [[nodiscard]] v1::NodeStatus status() const {
    v1::NodeStatus status;
    thresholds.add_to(status);
    return status;
  }
  [[nodiscard]] bool acts() const { return !status().dry_run(); }
  [[nodiscard]] std::string in_force() const { return core::to_string(thresholds.policy().thresholds.front()); }
  /// Runs until `done()` holds and the loop waits again.
  template <class Done>
  bool comes_to(Done done) {
    const bool came = test::run_until(loop.reactor, done);
    loop.clock.settle();
    return came;
  }
  /// Has all files read, of which a change of another key tells; true once it is told.
  bool reads_files() {
    const auto before = changes_told().size();
    cri_timeout += 1;
    files.agent_says(std::to_string(cri_timeout) + "s");
    thresholds.files_changed();
    return comes_to([&] { return changes_told().size() > before; });
  }
  /// Those of other settings than thresholds.
  [[nodiscard]] std::vector<std::string> changes_told() {
    std::vector<std::string> told;
    const auto subscription = events.subscribe(0, [] {});
    while (const auto next = subscription->next())
      if (next->message().starts_with("the configuration changed: ")) told.push_back(next->message());
    return told;
  }
  void runs_short() {
    loop.observer.now = agent::Loop::memory(50);
    loop.wake();
  }
  [[nodiscard]] bool has_evicted() const { return !loop.stopper.begun.empty(); }

  std::shared_ptr<Files> machine;
  Files& files{*machine};
  int cri_timeout = 10;
  Configuration configuration;
  bool dry_run;
  agent::Loop loop{};
  events::EventLog events{loop.reactor.get_executor()};
  agent::Recorder recorder{events};
  core::ThresholdOverlay live{};
  LiveThresholds thresholds{
      loop.reactor.get_executor(),
      {.files = files.names, .configuration = configuration, .dry_run = dry_run},
      LiveThresholds::at_start(configuration, agent::Loop::memory(4096), {}),
      {.agent = loop.agent, .evictions = loop.evictions, .reports = loop.reports, .recorder = recorder, .live = live}};
};

}  // namespace evictd::app::live_thresholds_test
