#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cri/call_observer.hpp"
#include "cri/messages.hpp"
#include "cri/presence.hpp"
#include "cri/reply.hpp"
#include "cri/stream.hpp"

namespace evictd::cri {

class Channel;

/// How long a call may take. Every call has a deadline: containerd has been seen to take a call and never answer it
/// (containerd #6080, #2744), and an agent that waits for it is no agent.
using Deadline = std::chrono::milliseconds;

/// Looking: 0.2 to 3 ms with containerd 1.6 on an idle machine; the rest is for a node that thrashes.
inline constexpr Deadline query_deadline{2'000};
/// A stop takes its grace period and, measured, 50 to 150 ms; a removal up to 20 ms. This is what they may take beyond
/// the grace period.
inline constexpr Deadline stop_deadline{10'000};
/// Removing an image waits for the runtime's garbage collection; starting anything unpacks and mounts.
inline constexpr Deadline slow_deadline{60'000};

template <class Response>
using Awaitable = boost::asio::awaitable<Reply<Response>>;

/// A client of one container runtime: RuntimeService and ImageService of CRI v1 over gRPC on a unix socket (src/rpc).
///
/// Every method is an awaitable that completes on the reactor with the response or a CallError, at the latest when its
/// deadline ends; nothing is thrown. Calls run side by side. A call fails at once while no runtime listens at the
/// endpoint, and connects anew where the runtime has closed the connection: a restarted runtime is found by any call.
///
/// All methods are for the reactor's thread. The client must be destroyed before the io_context: it cancels what is
/// under way, and waits for a large answer that is being parsed or read on in (some milliseconds). The cancelled
/// awaitables still complete if the reactor runs on. Until then the reactor does not run out of work once a call was
/// made: it waits for the connection's end.
class Client {
 public:
  /// `endpoint` as parse_endpoint() returns it. Connects lazily; nothing happens before the first call.
  /// `query`: the deadline of every call that only looks, unless it is given another.
  Client(boost::asio::any_io_executor reactor, std::string endpoint, Deadline query = query_deadline);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] const std::string& endpoint() const;

  /// Looks after the runtime from now on and tells when it appears and when it goes: once each, and once at the start
  /// if it is not there. That it goes is noticed as its connection ends, and that it is there within a quarter of a
  /// second. The listener is never called from inside a method of the client, and may destroy it; it
  /// must be there for as long as the reactor runs and this is there. Call it once.
  void watch(PresenceListener& listener);
  /// Has every call from now on observed. One observer; null: none. It outlives this, or takes its leave.
  void observe(CallObserver* observer);
  /// What watch() last told; false before that.
  [[nodiscard]] bool connected() const;

  Awaitable<v1::VersionResponse> version(std::optional<Deadline> deadline = {});
  /// With the runtime's verbose information (pods/verbose_status.hpp).
  Awaitable<v1::StatusResponse> status(std::optional<Deadline> deadline = {});
  /// Of containerd 2.0 and later.
  Awaitable<v1::RuntimeConfigResponse> runtime_config(std::optional<Deadline> deadline = {});

  /// What happens to sandboxes and containers from the first next() on; of containerd 1.7 and later. It has no
  /// deadline: a node may be quiet for days. containerd 1.x tells each event to one of its listeners only. The stream
  /// goes before this client, or is cancelled with it.
  std::unique_ptr<Stream<v1::ContainerEventResponse>> container_events();

  Awaitable<v1::ListPodSandboxResponse> list_pod_sandboxes(std::optional<Deadline> deadline = {});
  Awaitable<v1::ListContainersResponse> list_containers(std::optional<Deadline> deadline = {});
  /// Both with the runtime's verbose information (pods/verbose_status.hpp).
  Awaitable<v1::PodSandboxStatusResponse> pod_sandbox_status(std::string sandbox_id,
                                                             std::optional<Deadline> deadline = {});
  Awaitable<v1::ContainerStatusResponse> container_status(std::string container_id,
                                                          std::optional<Deadline> deadline = {});
  /// Without the verbose information, which the runtime has to put together.
  Awaitable<v1::ContainerStatusResponse> plain_container_status(std::string container_id,
                                                                std::optional<Deadline> deadline = {});
  Awaitable<v1::ContainerStatsResponse> container_stats(std::string container_id,
                                                        std::optional<Deadline> deadline = {});
  Awaitable<v1::ListContainerStatsResponse> list_container_stats(std::optional<Deadline> deadline = {});

  /// Has a running container confined to these CPUs and NUMA nodes, both in the kernel's list format ("0-3,8"). What is
  /// empty stays as it is, as does every other resource.
  Awaitable<v1::UpdateContainerResourcesResponse> update_cpuset(std::string container_id, std::string cpus,
                                                                std::string mems,
                                                                std::optional<Deadline> deadline = {});

  /// Runs a command in a running container, and has the runtime kill it after `limit` (at least 1 s). The deadline
  /// begins then. Where the command has written more than 256 KiB the call is Refused once it has ended, and how it
  /// ended is not known: a runtime would send 16 MiB of it, for each of a pod's containers.
  Awaitable<v1::ExecSyncResponse> exec_sync(std::string container_id, const std::vector<std::string>& command,
                                            std::chrono::seconds limit, Deadline beyond_limit = stop_deadline);
  /// SIGTERM, then SIGKILL after `grace`; SIGKILL at once if that is zero. The deadline begins when the grace period
  /// ends.
  Awaitable<v1::StopContainerResponse> stop_container(std::string container_id, std::chrono::seconds grace,
                                                      Deadline beyond_grace = stop_deadline);
  Awaitable<v1::RemoveContainerResponse> remove_container(std::string container_id, Deadline deadline = stop_deadline);
  /// Kills whatever still runs in the pod, without a grace period.
  Awaitable<v1::StopPodSandboxResponse> stop_pod_sandbox(std::string sandbox_id, Deadline deadline = stop_deadline);
  Awaitable<v1::RemovePodSandboxResponse> remove_pod_sandbox(std::string sandbox_id, Deadline deadline = stop_deadline);

  Awaitable<v1::ListImagesResponse> list_images(std::optional<Deadline> deadline = {});
  Awaitable<v1::ImageStatusResponse> image_status(std::string image, std::optional<Deadline> deadline = {});
  Awaitable<v1::ImageFsInfoResponse> image_fs_info(std::optional<Deadline> deadline = {});
  Awaitable<v1::RemoveImageResponse> remove_image(std::string image, Deadline deadline = slow_deadline);

  /// Running pods is a kubelet's work, not evictd's: these three are for tests and demos.
  Awaitable<v1::RunPodSandboxResponse> run_pod_sandbox(v1::RunPodSandboxRequest request,
                                                       Deadline deadline = slow_deadline);
  Awaitable<v1::CreateContainerResponse> create_container(v1::CreateContainerRequest request,
                                                          Deadline deadline = slow_deadline);
  Awaitable<v1::StartContainerResponse> start_container(std::string container_id, Deadline deadline = slow_deadline);

  /// For whoever reads on in a large answer: does `work` on the thread that parses those, or at once where no thread is
  /// to be had. Cancelled where the caller or the client is: then it may not have been done.
  Awaitable<void> read_on(std::move_only_function<void()> work);

 private:
  std::shared_ptr<Channel> channel_;
  Deadline query_;
};

}  // namespace evictd::cri
