#include "benchmarks/runtime_stand_in.hpp"

#include <api.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/process_table.hpp"

namespace bench {

namespace v1 = ::runtime::v1;
using grpc::ServerContext;

namespace {

const grpc::Status not_found{grpc::StatusCode::NOT_FOUND, "not found"};

}  // namespace

class RuntimeStandIn::State {
 public:
  struct Known {
    Pod pod;
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
    if (found == pods_.end()) return not_found;
    f(found->second);
    return grpc::Status::OK;
  }
  void add(const Pod& pod) {
    const std::lock_guard lock{mutex_};
    pods_[pod.name] = {.pod = pod, .created = ++created_};
    tell(pod.name);
  }
  void remove(const std::string& name) {
    const std::lock_guard lock{mutex_};
    pods_.erase(name);
    tell(name);
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

  /// Writes what happens to pods from now on, for as long as the listener is there.
  void tell(const ServerContext& context, grpc::ServerWriter<v1::ContainerEventResponse>& listener) {
    std::unique_lock lock{mutex_};
    auto told = changed_.size();
    while (!context.IsCancelled()) {
      more_.wait_for(lock, std::chrono::milliseconds{200});
      for (; told < changed_.size(); ++told) {
        v1::ContainerEventResponse event;
        event.set_container_id(changed_[told]);
        listener.Write(event);
      }
    }
  }

 private:
  void tell(const std::string& name) {
    changed_.push_back(name);
    more_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::string> changed_;
  std::map<std::string, Known> pods_;
  std::int64_t created_ = 0;
};

class RuntimeStandIn::Runtime final : public v1::RuntimeService::Service {
 public:
  explicit Runtime(State& state) : state_{state} {}

 private:
  grpc::Status Version(ServerContext*, const v1::VersionRequest*, v1::VersionResponse* response) override {
    response->set_runtime_name("stand-in");
    response->set_runtime_version("1");
    response->set_runtime_api_version("v1");
    return grpc::Status::OK;
  }

  grpc::Status Status(ServerContext*, const v1::StatusRequest*, v1::StatusResponse* response) override {
    (*response->mutable_info())["config"] = "{}";
    return grpc::Status::OK;
  }

  grpc::Status GetContainerEvents(ServerContext* context, const v1::GetEventsRequest*,
                                  grpc::ServerWriter<v1::ContainerEventResponse>* listener) override {
    state_.tell(*context, *listener);
    return grpc::Status::OK;
  }

  grpc::Status ListPodSandbox(ServerContext*, const v1::ListPodSandboxRequest*,
                              v1::ListPodSandboxResponse* response) override {
    state_.each([&](const State::Known& known) {
      auto& sandbox = *response->add_items();
      sandbox.set_id(known.pod.name);
      sandbox.mutable_metadata()->set_name(known.pod.name);
      sandbox.mutable_metadata()->set_namespace_("default");
      sandbox.mutable_metadata()->set_uid(known.pod.name);
      sandbox.set_state(known.runs ? v1::SANDBOX_READY : v1::SANDBOX_NOTREADY);
      sandbox.set_created_at(known.created);
    });
    return grpc::Status::OK;
  }

  grpc::Status PodSandboxStatus(ServerContext*, const v1::PodSandboxStatusRequest* request,
                                v1::PodSandboxStatusResponse* response) override {
    return state_.with(request->pod_sandbox_id(), [&](const State::Known& known) {
      response->mutable_status()->set_id(known.pod.name);
      response->mutable_status()->set_state(known.runs ? v1::SANDBOX_READY : v1::SANDBOX_NOTREADY);
      (*response->mutable_info())["info"] =
          fmt::format(R"({{"config":{{"linux":{{"cgroup_parent":"{}"}}}}}})", known.pod.cgroup);
    });
  }

  grpc::Status ListContainers(ServerContext*, const v1::ListContainersRequest*,
                              v1::ListContainersResponse* response) override {
    state_.each([&](const State::Known& known) {
      auto& container = *response->add_containers();
      container.set_id(known.pod.name);
      container.set_pod_sandbox_id(known.pod.name);
      container.mutable_metadata()->set_name("main");
      container.set_state(known.runs ? v1::CONTAINER_RUNNING : v1::CONTAINER_EXITED);
      container.set_created_at(known.created);
    });
    return grpc::Status::OK;
  }

  grpc::Status ContainerStatus(ServerContext*, const v1::ContainerStatusRequest* request,
                               v1::ContainerStatusResponse* response) override {
    return state_.with(request->container_id(), [&](const State::Known& known) {
      response->mutable_status()->set_id(known.pod.name);
      response->mutable_status()->set_state(known.runs ? v1::CONTAINER_RUNNING : v1::CONTAINER_EXITED);
      (*response->mutable_info())["info"] =
          fmt::format(R"({{"pid":0,"config":{{"linux":{{"resources":{{"oom_score_adj":1000}}}}}},)"
                      R"("runtimeSpec":{{"linux":{{"cgroupsPath":"{0}/{1}"}}}}}})",
                      known.pod.cgroup, known.pod.name);
    });
  }

  grpc::Status ListContainerStats(ServerContext*, const v1::ListContainerStatsRequest*,
                                  v1::ListContainerStatsResponse*) override {
    return grpc::Status::OK;
  }

  grpc::Status StopContainer(ServerContext*, const v1::StopContainerRequest* request,
                             v1::StopContainerResponse*) override {
    return state_.stop(request->container_id());
  }

  grpc::Status StopPodSandbox(ServerContext*, const v1::StopPodSandboxRequest* request,
                              v1::StopPodSandboxResponse*) override {
    return state_.stop(request->pod_sandbox_id());
  }

  State& state_;
};

/// No images, and no disk that could be short.
class RuntimeStandIn::Images final : public v1::ImageService::Service {
 public:
  explicit Images(std::filesystem::path directory) : directory_{std::move(directory)} {}

 private:
  grpc::Status ListImages(ServerContext*, const v1::ListImagesRequest*, v1::ListImagesResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status ImageStatus(ServerContext*, const v1::ImageStatusRequest*, v1::ImageStatusResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status ImageFsInfo(ServerContext*, const v1::ImageFsInfoRequest*, v1::ImageFsInfoResponse* response) override {
    response->add_image_filesystems()->mutable_fs_id()->set_mountpoint(directory_.native());
    return grpc::Status::OK;
  }

  std::filesystem::path directory_;
};

struct RuntimeStandIn::Server {
  Server(State& state, const std::filesystem::path& directory) : runtime{state}, images{directory} {}

  Runtime runtime;
  Images images;
  std::unique_ptr<grpc::Server> server;
};

RuntimeStandIn::RuntimeStandIn(const std::filesystem::path& socket, const std::filesystem::path& images)
    : state_{std::make_unique<State>()}, server_{std::make_unique<Server>(*state_, images)} {
  std::filesystem::create_directories(images / "snapshots");  // as containerd's overlayfs snapshotter has it
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket.native(), grpc::InsecureServerCredentials());
  builder.RegisterService(&server_->runtime);
  builder.RegisterService(&server_->images);
  server_->server = builder.BuildAndStart();
  if (!server_->server) testbed::fail("cannot serve on " + socket.native());
}

RuntimeStandIn::~RuntimeStandIn() { server_->server->Shutdown(std::chrono::system_clock::now()); }

void RuntimeStandIn::add(const Pod& pod) { state_->add(pod); }

void RuntimeStandIn::remove(const std::string& name) { state_->remove(name); }

}  // namespace bench
