#include "cri/fake_runtime.hpp"

#include <api.grpc.pb.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

namespace evictd::test {

namespace v1 = ::runtime::v1;

namespace {

/// A call that is never answered: it ends when the caller gives up or the server goes.
class Hanging : public grpc::ServerUnaryReactor {
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

grpc::Status not_found(const std::string& id) {
  return {grpc::StatusCode::NOT_FOUND, "an error occurred when try to find \"" + id + "\": not found"};
}

}  // namespace

class FakeRuntime::State {
 public:
  template <class Object>
  struct Entry {
    Object object;
    std::string info;
  };

  mutable std::mutex mutex;
  std::map<std::string, Entry<v1::PodSandbox>> sandboxes;
  std::map<std::string, Entry<v1::Container>> containers;
  std::map<std::string, int, std::less<>> calls;
  std::set<std::string, std::less<>> hanging;
  std::map<std::string, int, std::less<>> failing;
  std::chrono::seconds last_grace{-1};

  /// Counts the call and answers as the test ordered, normally with what `fill` returns under the lock.
  template <class Fill>
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, const std::string& method, Fill fill) {
    const std::lock_guard lock{mutex};
    ++calls[method];
    if (hanging.contains(method)) return new Hanging;
    auto* reactor = context->DefaultReactor();
    if (const auto failure = failing.find(method); failure != failing.end())
      reactor->Finish({static_cast<grpc::StatusCode>(failure->second), "ordered by the test"});
    else
      reactor->Finish(fill());
    return reactor;
  }
};

class FakeRuntime::RuntimeService : public v1::RuntimeService::CallbackService {
 public:
  explicit RuntimeService(State& state) : state_(state) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Version(Context* context, const v1::VersionRequest* request, v1::VersionResponse* response) override {
    return state_.answer(context, "Version", [&] {
      response->set_version(request->version());
      response->set_runtime_name("fake");
      response->set_runtime_version("1.0");
      response->set_runtime_api_version("v1");
      return grpc::Status::OK;
    });
  }

  Reactor* ListPodSandbox(Context* context, const v1::ListPodSandboxRequest*,
                          v1::ListPodSandboxResponse* response) override {
    return state_.answer(context, "ListPodSandbox", [&] {
      for (const auto& [id, entry] : state_.sandboxes) *response->add_items() = entry.object;
      return grpc::Status::OK;
    });
  }

  Reactor* ListContainers(Context* context, const v1::ListContainersRequest*,
                          v1::ListContainersResponse* response) override {
    return state_.answer(context, "ListContainers", [&] {
      for (const auto& [id, entry] : state_.containers) *response->add_containers() = entry.object;
      return grpc::Status::OK;
    });
  }

  Reactor* PodSandboxStatus(Context* context, const v1::PodSandboxStatusRequest* request,
                            v1::PodSandboxStatusResponse* response) override {
    return state_.answer(context, "PodSandboxStatus", [&] {
      const auto found = state_.sandboxes.find(request->pod_sandbox_id());
      if (found == state_.sandboxes.end()) return not_found(request->pod_sandbox_id());
      response->mutable_status()->set_id(found->first);
      response->mutable_status()->set_state(found->second.object.state());
      if (request->verbose()) (*response->mutable_info())["info"] = found->second.info;
      return grpc::Status::OK;
    });
  }

  Reactor* ContainerStatus(Context* context, const v1::ContainerStatusRequest* request,
                           v1::ContainerStatusResponse* response) override {
    return state_.answer(context, "ContainerStatus", [&] {
      const auto found = state_.containers.find(request->container_id());
      if (found == state_.containers.end()) return not_found(request->container_id());
      response->mutable_status()->set_id(found->first);
      response->mutable_status()->set_state(found->second.object.state());
      if (request->verbose()) (*response->mutable_info())["info"] = found->second.info;
      return grpc::Status::OK;
    });
  }

  Reactor* StopContainer(Context* context, const v1::StopContainerRequest* request,
                         v1::StopContainerResponse*) override {
    return state_.answer(context, "StopContainer", [&] {
      state_.last_grace = std::chrono::seconds{request->timeout()};
      const auto found = state_.containers.find(request->container_id());
      if (found == state_.containers.end()) return not_found(request->container_id());
      found->second.object.set_state(v1::CONTAINER_EXITED);
      return grpc::Status::OK;
    });
  }

  Reactor* RemoveContainer(Context* context, const v1::RemoveContainerRequest* request,
                           v1::RemoveContainerResponse*) override {
    return state_.answer(context, "RemoveContainer", [&] {
      state_.containers.erase(request->container_id());
      return grpc::Status::OK;
    });
  }

  Reactor* StopPodSandbox(Context* context, const v1::StopPodSandboxRequest* request,
                          v1::StopPodSandboxResponse*) override {
    return state_.answer(context, "StopPodSandbox", [&] {
      const auto found = state_.sandboxes.find(request->pod_sandbox_id());
      if (found == state_.sandboxes.end()) return not_found(request->pod_sandbox_id());
      found->second.object.set_state(v1::SANDBOX_NOTREADY);
      for (auto& [id, entry] : state_.containers)
        if (entry.object.pod_sandbox_id() == found->first) entry.object.set_state(v1::CONTAINER_EXITED);
      return grpc::Status::OK;
    });
  }

  Reactor* RemovePodSandbox(Context* context, const v1::RemovePodSandboxRequest* request,
                            v1::RemovePodSandboxResponse*) override {
    return state_.answer(context, "RemovePodSandbox", [&] {
      const auto& id = request->pod_sandbox_id();
      state_.sandboxes.erase(id);
      std::erase_if(state_.containers, [&](const auto& item) { return item.second.object.pod_sandbox_id() == id; });
      return grpc::Status::OK;
    });
  }

  State& state_;
};

class FakeRuntime::ImageService : public v1::ImageService::CallbackService {
 public:
  explicit ImageService(State& state) : state_(state) {}

 private:
  /// One image, larger than gRPC would take by default: its repository digests fill 5 MiB.
  grpc::ServerUnaryReactor* ListImages(grpc::CallbackServerContext* context, const v1::ListImagesRequest*,
                                       v1::ListImagesResponse* response) override {
    return state_.answer(context, "ListImages", [&] {
      auto* image = response->add_images();
      image->set_id("sha256:1");
      image->set_pinned(true);
      for (int i = 0; i < 5; ++i) image->add_repo_digests(std::string(1 << 20, 'x'));
      return grpc::Status::OK;
    });
  }

  State& state_;
};

struct FakeRuntime::Server {
  explicit Server(State& state) : runtime(state), images(state) {}

  RuntimeService runtime;
  ImageService images;
  std::unique_ptr<grpc::Server> server;
};

FakeRuntime::FakeRuntime() : state_(std::make_unique<State>()) {
  auto name = (std::filesystem::temp_directory_path() / "evictd-cri-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  directory_ = name;
}

FakeRuntime::~FakeRuntime() {
  stop();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::string FakeRuntime::endpoint() const { return "unix://" + directory_ + "/cri.sock"; }

void FakeRuntime::start() {
  server_ = std::make_unique<Server>(*state_);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(endpoint(), grpc::InsecureServerCredentials());
  builder.RegisterService(&server_->runtime);
  builder.RegisterService(&server_->images);
  server_->server = builder.BuildAndStart();
  if (!server_->server) throw std::runtime_error("cannot serve on " + endpoint());
}

void FakeRuntime::stop() {
  if (!server_) return;
  server_->server->Shutdown(std::chrono::system_clock::now());
  server_->server->Wait();
  server_.reset();
}

void FakeRuntime::put(v1::PodSandbox sandbox, std::string info) {
  const std::lock_guard lock{state_->mutex};
  const auto id = sandbox.id();
  state_->sandboxes.insert_or_assign(id, State::Entry<v1::PodSandbox>{std::move(sandbox), std::move(info)});
}

void FakeRuntime::put(v1::Container container, std::string info) {
  const std::lock_guard lock{state_->mutex};
  const auto id = container.id();
  state_->containers.insert_or_assign(id, State::Entry<v1::Container>{std::move(container), std::move(info)});
}

void FakeRuntime::remove_sandbox(const std::string& id) {
  const std::lock_guard lock{state_->mutex};
  state_->sandboxes.erase(id);
}

void FakeRuntime::remove_container(const std::string& id) {
  const std::lock_guard lock{state_->mutex};
  state_->containers.erase(id);
}

v1::PodSandboxState FakeRuntime::sandbox_state(const std::string& id) const {
  const std::lock_guard lock{state_->mutex};
  return state_->sandboxes.at(id).object.state();
}

v1::ContainerState FakeRuntime::container_state(const std::string& id) const {
  const std::lock_guard lock{state_->mutex};
  return state_->containers.at(id).object.state();
}

void FakeRuntime::hang(const std::string& method) {
  const std::lock_guard lock{state_->mutex};
  state_->hanging.insert(method);
}

void FakeRuntime::fail(const std::string& method, int grpc_code) {
  const std::lock_guard lock{state_->mutex};
  state_->failing[method] = grpc_code;
}

void FakeRuntime::recover(const std::string& method) {
  const std::lock_guard lock{state_->mutex};
  state_->hanging.erase(method);
  state_->failing.erase(method);
}

int FakeRuntime::calls(std::string_view method) const {
  const std::lock_guard lock{state_->mutex};
  const auto found = state_->calls.find(method);
  return found == state_->calls.end() ? 0 : found->second;
}

std::chrono::seconds FakeRuntime::last_grace() const {
  const std::lock_guard lock{state_->mutex};
  return state_->last_grace;
}

}  // namespace evictd::test
