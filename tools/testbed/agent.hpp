#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "os/file_descriptor.hpp"
#include "testbed/event_stream.hpp"
#include "testbed/process.hpp"
#include "testbed/testbed.hpp"

namespace testbed {

/// The real evictd guarding a testbed's node, with its configuration in the testbed's directory.
class Agent {
 public:
  struct Options {
    std::string thresholds;           ///< the eviction fields of a KubeletConfiguration, YAML
    std::string kubelet{};            ///< further fields of the KubeletConfiguration, YAML lines
    std::string node{};               ///< further fields of `node`
    std::string notifier{};           ///< fields of `notifier`, YAML flow: "disable: [memcg], fallbackInterval: 1s"
    std::string eviction{};           ///< fields of `eviction`
    bool keep_history = false;        ///< there is a stateDirectory, the testbed's own: events outlive the agent
    std::string threshold_changes{};  ///< fields of `thresholds`
    std::string sections{};           ///< further sections of the AgentConfiguration, YAML lines: "kill: {mode: cri}\n"
    bool find_kubelet = false;        ///< it is named none, and goes by the kubelet that runs
    std::vector<std::string> arguments{};
    std::vector<std::string> environment{};     ///< "NAME=value"
    std::vector<std::string> wrapper{};         ///< a program that runs evictd: {"setpriv", "--reuid=65534"}
    std::filesystem::path program{};            ///< in place of evictd; empty: evictd itself
    std::filesystem::path runtime_directory{};  ///< empty: the testbed's own
    bool wait_until_ready = true;               ///< until the API answers and the runtime's pods are known
    bool connect = true;                        ///< false: nobody is connected to the API before connect()
    /// Of which kinds events() are; none: all.
    std::vector<Event::Kind> kinds{};
  };

  Agent(Testbed& testbed, const Options& options);

  /// To the API, for all that follows. Once, and not where the options have it done.
  void connect(const Options& options);

  [[nodiscard]] evictd::v1::NodeStatus status() const;
  [[nodiscard]] EventStream& events() { return *events_; }
  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] std::string address() const { return "unix:" + socket_; }
  /// What it says of a pod, YAML or JSON, that might run here; nothing comes of it.
  [[nodiscard]] evictd::v1::AdmitResponse admit(const std::string& pod) const;
  /// Until the agent knows as many pods: what it does not know it cannot evict.
  void wait_for_pods(std::size_t count) const;
  /// Until the runtime has told it of this one, and not only its cgroup.
  void wait_for_pod(std::string_view uid) const;
  [[nodiscard]] bool is_listed(std::string_view uid) const;
  [[nodiscard]] std::size_t open_files() const;

 private:
  [[nodiscard]] Process start(Testbed& testbed, const Options& options) const;

  evictd::os::FileDescriptor no_kubelet_;  // see kubelet_turn.hpp
  std::string socket_;
  Process process_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<EventStream> events_;
};

}  // namespace testbed
