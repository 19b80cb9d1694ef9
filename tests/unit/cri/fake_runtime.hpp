#pragma once
#include <api.pb.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace evictd::test {

/// A container runtime inside the test: serves the calls of CRI v1 that evictd makes on a unix socket, holds what the
/// test puts into it, and fails or hangs where the test says so. All methods may be called from any thread.
class FakeRuntime {
 public:
  /// Not serving yet: see start(). `socket`: a path, in place of a directory of its own.
  explicit FakeRuntime(std::string socket = {});
  ~FakeRuntime();

  [[nodiscard]] std::string endpoint() const { return "unix://" + socket_; }
  void start();
  /// As if it were killed: calls under way break, the socket is gone.
  void stop();

  /// As on a node that thrashes: the socket takes a connection, but nobody speaks on it before answer_waiting().
  void listen_silently();
  void answer_waiting();

  /// Adds the sandbox, or replaces the one with its id. `info` is what a verbose status says under "info".
  void put(runtime::v1::PodSandbox sandbox, std::string info);
  void put(runtime::v1::Container container, std::string info);
  /// A pod of the namespace "default" that runs, with its uid for a name and for all ids: its sandbox, and a container
  /// "main" whose cgroup is CGROUP/UID, by its id, as runtimes name it.
  void put_pod(const std::string& uid, const std::string& cgroup);
  /// What the container's status says that it has mounted as an image volume.
  void mount_image(const std::string& container_id, const std::string& image);
  /// A removal takes an image by its id; a status also by a tag.
  void put(runtime::v1::Image image);
  void put(runtime::v1::ContainerStats stats);
  void put(runtime::v1::ImageFsInfoResponse filesystems);
  /// Where a container's log is, as its status says it.
  void set_log_path(const std::string& container_id, std::string path);
  /// What the container's status says that it was given, verbose or not.
  void set_resources(const std::string& container_id, runtime::v1::LinuxContainerResources resources);
  /// What a verbose Status says under "config".
  void set_config(std::string json);
  /// What RuntimeConfig answers; before that it is a runtime that has no such call.
  void set_cgroup_driver(runtime::v1::CgroupDriver driver);

  /// Sends so many events of that container to everyone who listens, one after the other and as fast as they are taken.
  void tell(int events = 1, const std::string& container_id = "c1");
  /// Sends bytes that are no event.
  void tell_garbage();
  /// Ends the streams of all who listen with this gRPC status code.
  void end_streams(int grpc_code);
  /// How many listen now.
  [[nodiscard]] int listeners() const;
  /// Events that gRPC has taken from us, of all streams.
  [[nodiscard]] int told() const;

  void remove_sandbox(const std::string& id);
  void remove_container(const std::string& id);
  [[nodiscard]] runtime::v1::PodSandboxState sandbox_state(const std::string& id) const;
  [[nodiscard]] runtime::v1::ContainerState container_state(const std::string& id) const;
  /// "RemoveContainer c1", "StopPodSandbox s1", …: every stop and removal that was carried out, in order.
  [[nodiscard]] std::vector<std::string> done() const;

  /// "c1 cpus 0-1" or "c1 cpus 1 mems 0": every update of a container's cpuset that was carried out, in order.
  [[nodiscard]] std::vector<std::string> cpusets() const;

  /// "c1 /bin/sh -c true": every command that was run in a container, in order.
  [[nodiscard]] std::vector<std::string> commands() const;
  /// The exit code of every command from now on.
  void exit_with(int code);
  /// So many bytes on stdout from every command from now on.
  void write_bytes(std::size_t count);
  /// The pod's address.
  void set_address(const std::string& sandbox_id, std::string ip);

  /// From now on the method ("StopContainer") takes calls and never answers them / answers with this gRPC status code /
  /// works again.
  void hang(const std::string& method);
  void fail(const std::string& method, int grpc_code, const std::string& message = "ordered by the test");
  void recover(const std::string& method);
  /// Runs when the method is called, before it is answered: what happens on the node meanwhile. On a thread of gRPC.
  void meanwhile(const std::string& method, std::function<void()> action);

  /// How often the method was called.
  [[nodiscard]] int calls(std::string_view method) const;
  struct Stop {
    std::string container;
    std::chrono::seconds grace{};
  };
  /// Every StopContainer that was answered, in order.
  [[nodiscard]] std::vector<Stop> stops() const;
  /// The grace period of the last StopContainer; -1 s before that.
  [[nodiscard]] std::chrono::seconds last_grace() const;

 private:
  void start_server(bool listen);

  class State;
  class RuntimeService;
  class ImageService;
  struct Server;

  std::string directory_;  // its own, if any
  std::string socket_;
  std::unique_ptr<State> state_;
  std::unique_ptr<Server> server_;
  int silent_listener_ = -1;
};

}  // namespace evictd::test
