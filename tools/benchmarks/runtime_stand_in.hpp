#pragma once
#include <api.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/process_table.hpp"

namespace bench {

namespace cri = ::runtime::v1;

struct StandInPod {
  std::string name;                 ///< also its uid and its ids
  std::string cgroup;               ///< as CRI says it; the container's is below it: CGROUP/NAME
  std::filesystem::path directory;  ///< of the cgroup in the memory hierarchy; a stop kills what runs there
};

/// No images, and no disk that could be short.
class NoImages final : public cri::ImageService::Service {
 public:
  explicit NoImages(std::filesystem::path directory) : directory_{std::move(directory)} {}

 private:
  grpc::Status ListImages(grpc::ServerContext*, const cri::ListImagesRequest*, cri::ListImagesResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status ImageStatus(grpc::ServerContext*, const cri::ImageStatusRequest*, cri::ImageStatusResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status ImageFsInfo(grpc::ServerContext*, const cri::ImageFsInfoRequest*,
                           cri::ImageFsInfoResponse* response) override {
    response->add_image_filesystems()->mutable_fs_id()->set_mountpoint(directory_.native());
    return grpc::Status::OK;
  }

  std::filesystem::path directory_;
};

/// Answers the CRI calls that evictd makes, on a unix socket, for pods that are mere cgroups with a process inside. A
/// stand-in, used by `bench scale` alone: a real containerd needs minutes and gigabytes for a thousand pods, and the
/// bench asks what evictd costs, not what containerd does. What it cannot show is how long a real runtime takes. As
/// containerd does from 1.7 on it tells of pods that come and go, so evictd lists them once a minute.
class RuntimeStandIn final : public cri::RuntimeService::Service {
 public:
  /// `images`: a directory, empty at first, for the images and layers that there are none of.
  RuntimeStandIn(const std::filesystem::path& socket, const std::filesystem::path& images) : images_{images} {
    std::filesystem::create_directories(images / "snapshots");  // as containerd's overlayfs snapshotter has it
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket.native(), grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    builder.RegisterService(&images_);
    server_ = builder.BuildAndStart();
    if (!server_) testbed::fail("cannot serve on " + socket.native());
  }
  ~RuntimeStandIn() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void add(const StandInPod& pod) {
    const std::lock_guard lock{mutex_};
    pods_[pod.name] = {.pod = pod, .created = ++created_};
    tell(pod.name);
  }
  void remove(const std::string& name) {
    const std::lock_guard lock{mutex_};
    pods_.erase(name);
    tell(name);
  }

 private:
  struct Known {
    StandInPod pod;
    bool runs = true;
    std::int64_t created = 0;
  };

  /// Calls `f` with every pod.
  template <class F>
  void each(F f) {
    const std::lock_guard lock{mutex_};
    for (const auto& [name, known] : pods_) f(known);
  }
  /// Calls `f` with the pod, if it is there.
  template <class F>
  grpc::Status with(const std::string& name, F f) {
    const std::lock_guard lock{mutex_};
    const auto found = pods_.find(name);
    if (found == pods_.end()) return {grpc::StatusCode::NOT_FOUND, "not found"};
    f(found->second);
    return grpc::Status::OK;
  }
  /// As a runtime does: it answers once nothing runs any more.
  grpc::Status stop(const std::string& name) {
    std::filesystem::path directory;
    auto status = with(name, [&](Known& known) {
      directory = known.pod.directory;
      known.runs = false;
      tell(name);
    });
    if (!status.ok()) return status;
    testbed::report_failure([&] { testbed::kill_all([&] { return testbed::processes_in_cgroup(directory); }); });
    return status;
  }

  grpc::Status Version(grpc::ServerContext*, const cri::VersionRequest*, cri::VersionResponse* response) override {
    response->set_runtime_name("stand-in");
    response->set_runtime_version("1");
    response->set_runtime_api_version("v1");
    return grpc::Status::OK;
  }

  grpc::Status Status(grpc::ServerContext*, const cri::StatusRequest*, cri::StatusResponse* response) override {
    (*response->mutable_info())["config"] = "{}";
    return grpc::Status::OK;
  }

  /// Writes what happens to pods from now on, for as long as the listener is there.
  grpc::Status GetContainerEvents(grpc::ServerContext* context, const cri::GetEventsRequest*,
                                  grpc::ServerWriter<cri::ContainerEventResponse>* listener) override {
    std::unique_lock lock{mutex_};
    auto told = changed_.size();
    while (!context->IsCancelled()) {
      more_.wait_for(lock, std::chrono::milliseconds{200});
      for (; told < changed_.size(); ++told) {
        cri::ContainerEventResponse event;
        event.set_container_id(changed_[told]);
        listener->Write(event);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status ListPodSandbox(grpc::ServerContext*, const cri::ListPodSandboxRequest*,
                              cri::ListPodSandboxResponse* response) override {
    each([&](const Known& known) {
      auto& sandbox = *response->add_items();
      sandbox.set_id(known.pod.name);
      sandbox.mutable_metadata()->set_name(known.pod.name);
      sandbox.mutable_metadata()->set_namespace_("default");
      sandbox.mutable_metadata()->set_uid(known.pod.name);
      sandbox.set_state(known.runs ? cri::SANDBOX_READY : cri::SANDBOX_NOTREADY);
      sandbox.set_created_at(known.created);
    });
    return grpc::Status::OK;
  }

  grpc::Status PodSandboxStatus(grpc::ServerContext*, const cri::PodSandboxStatusRequest* request,
                                cri::PodSandboxStatusResponse* response) override {
    return with(request->pod_sandbox_id(), [&](const Known& known) {
      response->mutable_status()->set_id(known.pod.name);
      response->mutable_status()->set_state(known.runs ? cri::SANDBOX_READY : cri::SANDBOX_NOTREADY);
      (*response->mutable_info())["info"] =
          fmt::format(R"({{"config":{{"linux":{{"cgroup_parent":"{}"}}}}}})", known.pod.cgroup);
    });
  }

  grpc::Status ListContainers(grpc::ServerContext*, const cri::ListContainersRequest*,
                              cri::ListContainersResponse* response) override {
    each([&](const Known& known) {
      auto& container = *response->add_containers();
      container.set_id(known.pod.name);
      container.set_pod_sandbox_id(known.pod.name);
      container.mutable_metadata()->set_name("main");
      container.set_state(known.runs ? cri::CONTAINER_RUNNING : cri::CONTAINER_EXITED);
      container.set_created_at(known.created);
    });
    return grpc::Status::OK;
  }

  grpc::Status ContainerStatus(grpc::ServerContext*, const cri::ContainerStatusRequest* request,
                               cri::ContainerStatusResponse* response) override {
    return with(request->container_id(), [&](const Known& known) {
      response->mutable_status()->set_id(known.pod.name);
      response->mutable_status()->set_state(known.runs ? cri::CONTAINER_RUNNING : cri::CONTAINER_EXITED);
      (*response->mutable_info())["info"] =
          fmt::format(R"({{"pid":0,"config":{{"linux":{{"resources":{{"oom_score_adj":1000}}}}}},)"
                      R"("runtimeSpec":{{"linux":{{"cgroupsPath":"{0}/{1}"}}}}}})",
                      known.pod.cgroup, known.pod.name);
    });
  }

  grpc::Status ListContainerStats(grpc::ServerContext*, const cri::ListContainerStatsRequest*,
                                  cri::ListContainerStatsResponse*) override {
    return grpc::Status::OK;
  }

  grpc::Status StopContainer(grpc::ServerContext*, const cri::StopContainerRequest* request,
                             cri::StopContainerResponse*) override {
    return stop(request->container_id());
  }

  grpc::Status StopPodSandbox(grpc::ServerContext*, const cri::StopPodSandboxRequest* request,
                              cri::StopPodSandboxResponse*) override {
    return stop(request->pod_sandbox_id());
  }

  void tell(const std::string& name) {
    changed_.push_back(name);
    more_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> changed_;
  std::map<std::string, Known> pods_;
  std::int64_t created_ = 0;
  NoImages images_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace bench
