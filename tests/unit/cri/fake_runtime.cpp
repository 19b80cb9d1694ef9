#include "cri/fake_runtime.hpp"

#include <api.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <grpcpp/support/byte_buffer.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "os/unix_address.hpp"

namespace evictd::test {

namespace {

/// A call that is never answered: it ends when the caller gives up or the server goes.
class Hanging : public grpc::ServerUnaryReactor {
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

/// One who listens to the events. Its own lock comes after the runtime's.
class Listener : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Listener(std::function<void()> told, std::function<void(Listener*)> gone)
      : told_(std::move(told)), gone_(std::move(gone)) {}

  void tell(const std::string& bytes, int times) {
    const std::lock_guard lock{mutex_};
    due_.insert(due_.end(), static_cast<std::size_t>(times), grpc::Slice{bytes});
    write();
  }
  void end(grpc::Status status) {
    const std::lock_guard lock{mutex_};
    if (!std::exchange(ended_, true)) Finish(std::move(status));
  }

 private:
  void write() {
    if (writing_ || ended_ || due_.empty()) return;
    writing_ = true;
    buffer_ = grpc::ByteBuffer{&due_.front(), 1};
    due_.pop_front();
    StartWrite(&buffer_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) told_();
    const std::lock_guard lock{mutex_};
    writing_ = false;
    write();
  }
  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override {
    gone_(this);
    delete this;
  }

  std::function<void()> told_;
  std::function<void(Listener*)> gone_;
  std::mutex mutex_;
  std::deque<grpc::Slice> due_;  // which share their bytes
  grpc::ByteBuffer buffer_;
  bool writing_ = false;
  bool ended_ = false;
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
  std::map<std::string, Entry<runtime::v1::PodSandbox>> sandboxes;
  std::map<std::string, Entry<runtime::v1::Container>> containers;
  std::map<std::string, runtime::v1::Image> images;
  std::map<std::string, std::vector<std::string>> mounted;                // by container
  std::map<std::string, std::string> log_paths;                           // by container
  std::map<std::string, runtime::v1::LinuxContainerResources> resources;  // by container
  runtime::v1::ListContainerStatsResponse stats;
  runtime::v1::ImageFsInfoResponse filesystems;
  std::string config = "{}";
  std::vector<std::string> done;
  std::vector<std::string> cpusets;
  std::vector<std::string> commands;
  std::map<std::string, std::string, std::less<>> addresses;  // by sandbox
  int exit_code = 0;
  std::string written;
  std::map<std::string, std::function<void()>, std::less<>> meanwhile;
  std::map<std::string, int, std::less<>> calls;
  std::set<std::string, std::less<>> hanging;
  std::map<std::string, grpc::Status, std::less<>> failing;
  std::vector<Stop> stops;
  std::optional<runtime::v1::CgroupDriver> cgroup_driver;
  std::set<Listener*> listeners;
  int told = 0;

  /// Under the lock, so none of them goes meanwhile.
  template <class Do>
  void each_listener(Do act) {
    const std::lock_guard lock{mutex};
    for (auto* listener : listeners) act(*listener);
  }

  Listener* listen() {
    const std::lock_guard lock{mutex};
    ++calls["GetContainerEvents"];
    auto* listener = new Listener{[this] {
                                    const std::lock_guard lock{mutex};
                                    ++told;
                                  },
                                  [this](Listener* gone) {
                                    const std::lock_guard lock{mutex};
                                    listeners.erase(gone);
                                  }};
    if (const auto failure = failing.find("GetContainerEvents"); failure != failing.end())
      listener->end(failure->second);
    else
      listeners.insert(listener);
    return listener;
  }

  /// Counts the call and answers as the test ordered, normally with what `fill` returns under the lock. What is to
  /// happen meanwhile does so on a thread of its own: it may wait, and gRPC's threads carry the other calls.
  template <class Fill>
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, const std::string& method, Fill fill) {
    const std::lock_guard lock{mutex};
    const auto found = meanwhile.find(method);
    if (hanging.contains(method)) {
      ++calls[method];
      if (found != meanwhile.end()) actions.emplace_back(found->second);
      return new Hanging;
    }
    auto* reactor = context->DefaultReactor();
    if (found != meanwhile.end())
      actions.emplace_back([this, reactor, method, fill, action = found->second] {
        action();
        const std::lock_guard lock{mutex};
        finish(*reactor, method, fill);
      });
    else
      finish(*reactor, method, fill);
    return reactor;
  }

 private:
  template <class Fill>
  void finish(grpc::ServerUnaryReactor& reactor, const std::string& method, Fill fill) {
    ++calls[method];
    if (const auto failure = failing.find(method); failure != failing.end())
      reactor.Finish(failure->second);
    else
      reactor.Finish(fill());
  }

  std::deque<std::jthread> actions;  // ends before what they use
};

class FakeRuntime::RuntimeService : public runtime::v1::RuntimeService::WithRawCallbackMethod_GetContainerEvents<
                                        runtime::v1::RuntimeService::CallbackService> {
 public:
  explicit RuntimeService(State& state) : state_(state) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Version(Context* context, const runtime::v1::VersionRequest* request,
                   runtime::v1::VersionResponse* response) override {
    return state_.answer(context, "Version", [=, this] {
      response->set_version(request->version());
      response->set_runtime_name("fake");
      response->set_runtime_version("1.0");
      response->set_runtime_api_version("v1");
      return grpc::Status::OK;
    });
  }

  Reactor* Status(Context* context, const runtime::v1::StatusRequest* request,
                  runtime::v1::StatusResponse* response) override {
    return state_.answer(context, "Status", [=, this] {
      if (request->verbose()) (*response->mutable_info())["config"] = state_.config;
      return grpc::Status::OK;
    });
  }

  Reactor* RuntimeConfig(Context* context, const runtime::v1::RuntimeConfigRequest*,
                         runtime::v1::RuntimeConfigResponse* response) override {
    return state_.answer(context, "RuntimeConfig", [=, this] {
      if (!state_.cgroup_driver) return grpc::Status{grpc::StatusCode::UNIMPLEMENTED, "unknown method RuntimeConfig"};
      response->mutable_linux()->set_cgroup_driver(*state_.cgroup_driver);
      return grpc::Status::OK;
    });
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetContainerEvents(Context*, const grpc::ByteBuffer*) override {
    return state_.listen();
  }

  Reactor* ListContainerStats(Context* context, const runtime::v1::ListContainerStatsRequest*,
                              runtime::v1::ListContainerStatsResponse* response) override {
    return state_.answer(context, "ListContainerStats", [=, this] {
      *response = state_.stats;
      return grpc::Status::OK;
    });
  }

  Reactor* ListPodSandbox(Context* context, const runtime::v1::ListPodSandboxRequest*,
                          runtime::v1::ListPodSandboxResponse* response) override {
    return state_.answer(context, "ListPodSandbox", [=, this] {
      for (const auto& [id, entry] : state_.sandboxes) *response->add_items() = entry.object;
      return grpc::Status::OK;
    });
  }

  Reactor* ListContainers(Context* context, const runtime::v1::ListContainersRequest*,
                          runtime::v1::ListContainersResponse* response) override {
    return state_.answer(context, "ListContainers", [=, this] {
      for (const auto& [id, entry] : state_.containers) *response->add_containers() = entry.object;
      return grpc::Status::OK;
    });
  }

  Reactor* PodSandboxStatus(Context* context, const runtime::v1::PodSandboxStatusRequest* request,
                            runtime::v1::PodSandboxStatusResponse* response) override {
    return state_.answer(context, "PodSandboxStatus", [=, this] {
      const auto found = state_.sandboxes.find(request->pod_sandbox_id());
      if (found == state_.sandboxes.end()) return not_found(request->pod_sandbox_id());
      response->mutable_status()->set_id(found->first);
      response->mutable_status()->set_state(found->second.object.state());
      response->mutable_status()->mutable_network()->set_ip(state_.addresses[found->first]);
      if (request->verbose()) (*response->mutable_info())["info"] = found->second.info;
      return grpc::Status::OK;
    });
  }

  Reactor* ContainerStatus(Context* context, const runtime::v1::ContainerStatusRequest* request,
                           runtime::v1::ContainerStatusResponse* response) override {
    return state_.answer(context, "ContainerStatus", [=, this] {
      const auto found = state_.containers.find(request->container_id());
      if (found == state_.containers.end()) return not_found(request->container_id());
      response->mutable_status()->set_id(found->first);
      response->mutable_status()->set_state(found->second.object.state());
      for (const auto& image : state_.mounted[found->first])
        response->mutable_status()->add_mounts()->mutable_image()->set_image(image);
      if (const auto log = state_.log_paths.find(found->first); log != state_.log_paths.end())
        response->mutable_status()->set_log_path(log->second);
      if (const auto given = state_.resources.find(found->first); given != state_.resources.end())
        *response->mutable_status()->mutable_resources()->mutable_linux() = given->second;
      if (request->verbose()) (*response->mutable_info())["info"] = found->second.info;
      return grpc::Status::OK;
    });
  }

  Reactor* UpdateContainerResources(Context* context, const runtime::v1::UpdateContainerResourcesRequest* request,
                                    runtime::v1::UpdateContainerResourcesResponse*) override {
    return state_.answer(context, "UpdateContainerResources", [=, this] {
      if (!state_.containers.contains(request->container_id())) return not_found(request->container_id());
      const auto& cpuset = request->linux();
      auto line = request->container_id();
      if (!cpuset.cpuset_cpus().empty()) line += " cpus " + cpuset.cpuset_cpus();
      if (!cpuset.cpuset_mems().empty()) line += " mems " + cpuset.cpuset_mems();
      state_.cpusets.push_back(std::move(line));
      return grpc::Status::OK;
    });
  }

  Reactor* ExecSync(Context* context, const runtime::v1::ExecSyncRequest* request,
                    runtime::v1::ExecSyncResponse* response) override {
    return state_.answer(context, "ExecSync", [=, this] {
      if (!state_.containers.contains(request->container_id())) return not_found(request->container_id());
      auto line = request->container_id();
      for (const auto& word : request->cmd()) line += " " + word;
      state_.commands.push_back(std::move(line));
      response->set_exit_code(state_.exit_code);
      // Our proto leaves out stdout, which is field 1 as this one is.
      runtime::v1::StopContainerRequest standing_in;
      standing_in.set_container_id(state_.written);
      response->MergeFromString(standing_in.SerializeAsString());
      return grpc::Status::OK;
    });
  }

  Reactor* StopContainer(Context* context, const runtime::v1::StopContainerRequest* request,
                         runtime::v1::StopContainerResponse*) override {
    return state_.answer(context, "StopContainer", [=, this] {
      state_.stops.push_back({request->container_id(), std::chrono::seconds{request->timeout()}});
      const auto found = state_.containers.find(request->container_id());
      if (found == state_.containers.end()) return not_found(request->container_id());
      found->second.object.set_state(runtime::v1::CONTAINER_EXITED);
      return grpc::Status::OK;
    });
  }

  Reactor* RemoveContainer(Context* context, const runtime::v1::RemoveContainerRequest* request,
                           runtime::v1::RemoveContainerResponse*) override {
    return state_.answer(context, "RemoveContainer", [=, this] {
      state_.containers.erase(request->container_id());
      state_.done.push_back("RemoveContainer " + request->container_id());
      return grpc::Status::OK;
    });
  }

  Reactor* StopPodSandbox(Context* context, const runtime::v1::StopPodSandboxRequest* request,
                          runtime::v1::StopPodSandboxResponse*) override {
    return state_.answer(context, "StopPodSandbox", [=, this] {
      const auto found = state_.sandboxes.find(request->pod_sandbox_id());
      if (found == state_.sandboxes.end()) return not_found(request->pod_sandbox_id());
      found->second.object.set_state(runtime::v1::SANDBOX_NOTREADY);
      for (auto& [id, entry] : state_.containers)
        if (entry.object.pod_sandbox_id() == found->first) entry.object.set_state(runtime::v1::CONTAINER_EXITED);
      state_.done.push_back("StopPodSandbox " + found->first);
      return grpc::Status::OK;
    });
  }

  Reactor* RemovePodSandbox(Context* context, const runtime::v1::RemovePodSandboxRequest* request,
                            runtime::v1::RemovePodSandboxResponse*) override {
    return state_.answer(context, "RemovePodSandbox", [=, this] {
      const auto& id = request->pod_sandbox_id();
      state_.sandboxes.erase(id);
      state_.done.push_back("RemovePodSandbox " + id);
      std::erase_if(state_.containers, [&](const auto& item) { return item.second.object.pod_sandbox_id() == id; });
      return grpc::Status::OK;
    });
  }

  State& state_;
};

class FakeRuntime::ImageService : public runtime::v1::ImageService::CallbackService {
 public:
  explicit ImageService(State& state) : state_(state) {}

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* ListImages(Context* context, const runtime::v1::ListImagesRequest*,
                      runtime::v1::ListImagesResponse* response) override {
    return state_.answer(context, "ListImages", [=, this] {
      for (const auto& [id, image] : state_.images) *response->add_images() = image;
      return grpc::Status::OK;
    });
  }

  /// As containerd has it: an image that is not there is no error.
  Reactor* ImageStatus(Context* context, const runtime::v1::ImageStatusRequest* request,
                       runtime::v1::ImageStatusResponse* response) override {
    return state_.answer(context, "ImageStatus", [=, this] {
      const auto& name = request->image().image();
      for (const auto& [id, image] : state_.images)
        if (id == name || std::ranges::find(image.repo_tags(), name) != image.repo_tags().end())
          *response->mutable_image() = image;
      return grpc::Status::OK;
    });
  }

  Reactor* RemoveImage(Context* context, const runtime::v1::RemoveImageRequest* request,
                       runtime::v1::RemoveImageResponse*) override {
    return state_.answer(context, "RemoveImage", [=, this] {
      state_.images.erase(request->image().image());
      state_.done.push_back("RemoveImage " + request->image().image());
      return grpc::Status::OK;
    });
  }

  Reactor* ImageFsInfo(Context* context, const runtime::v1::ImageFsInfoRequest*,
                       runtime::v1::ImageFsInfoResponse* response) override {
    return state_.answer(context, "ImageFsInfo", [=, this] {
      *response = state_.filesystems;
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

FakeRuntime::FakeRuntime(std::string socket) : socket_(std::move(socket)), state_(std::make_unique<State>()) {
  if (!socket_.empty()) return;
  auto name = (std::filesystem::temp_directory_path() / "evictd-cri-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  directory_ = name;
  socket_ = directory_ + "/cri.sock";
}

FakeRuntime::~FakeRuntime() {
  stop();
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

void FakeRuntime::start() { start_server(true); }

void FakeRuntime::start_server(bool listen) {
  server_ = std::make_unique<Server>(*state_);
  grpc::ServerBuilder builder;
  if (listen) builder.AddListeningPort(endpoint(), grpc::InsecureServerCredentials());
  builder.RegisterService(&server_->runtime);
  builder.RegisterService(&server_->images);
  server_->server = builder.BuildAndStart();
  if (!server_->server) throw std::runtime_error("cannot serve on " + endpoint());
}

void FakeRuntime::listen_silently() {
  silent_listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (silent_listener_ < 0 || os::bind_to(silent_listener_, socket_) != 0 || listen(silent_listener_, 4) != 0)
    throw std::runtime_error("cannot listen on " + endpoint());
}

void FakeRuntime::answer_waiting() {
  const int connection = accept4(silent_listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection < 0) throw std::runtime_error("nobody waits on " + endpoint());
  start_server(false);
  grpc::AddInsecureChannelFromFd(server_->server.get(), connection);
}

void FakeRuntime::stop() {
  if (silent_listener_ >= 0) close(std::exchange(silent_listener_, -1));
  if (!server_) return;
  server_->server->Shutdown(std::chrono::system_clock::now());
  server_->server->Wait();
  server_.reset();
}

void FakeRuntime::put(runtime::v1::PodSandbox sandbox, std::string info) {
  const std::lock_guard lock{state_->mutex};
  const auto id = sandbox.id();
  state_->sandboxes.insert_or_assign(id, State::Entry<runtime::v1::PodSandbox>{std::move(sandbox), std::move(info)});
}

void FakeRuntime::put(runtime::v1::Container container, std::string info) {
  const std::lock_guard lock{state_->mutex};
  const auto id = container.id();
  state_->containers.insert_or_assign(id, State::Entry<runtime::v1::Container>{std::move(container), std::move(info)});
}

void FakeRuntime::put_pod(const std::string& uid, const std::string& cgroup) {
  runtime::v1::PodSandbox sandbox;
  sandbox.set_id(uid);
  sandbox.mutable_metadata()->set_name(uid);
  sandbox.mutable_metadata()->set_namespace_("default");
  sandbox.mutable_metadata()->set_uid(uid);
  sandbox.set_state(runtime::v1::SANDBOX_READY);
  put(std::move(sandbox), fmt::format(R"({{"config":{{"linux":{{"cgroup_parent":"{}"}}}}}})", cgroup));
  runtime::v1::Container container;
  container.set_id(uid);
  container.set_pod_sandbox_id(uid);
  container.mutable_metadata()->set_name("main");
  container.set_state(runtime::v1::CONTAINER_RUNNING);
  put(std::move(container), fmt::format(R"({{"pid":0,"config":{{"linux":{{"resources":{{"oom_score_adj":1000}}}}}},)"
                                        R"("runtimeSpec":{{"linux":{{"cgroupsPath":"{}/{}"}}}}}})",
                                        cgroup, uid));
}

void FakeRuntime::mount_image(const std::string& container_id, const std::string& image) {
  const std::lock_guard lock{state_->mutex};
  state_->mounted[container_id].push_back(image);
}

void FakeRuntime::put(runtime::v1::Image image) {
  const std::lock_guard lock{state_->mutex};
  const auto id = image.id();
  state_->images.insert_or_assign(id, std::move(image));
}

void FakeRuntime::put(runtime::v1::ContainerStats stats) {
  const std::lock_guard lock{state_->mutex};
  *state_->stats.add_stats() = std::move(stats);
}

void FakeRuntime::put(runtime::v1::ImageFsInfoResponse filesystems) {
  const std::lock_guard lock{state_->mutex};
  state_->filesystems = std::move(filesystems);
}

void FakeRuntime::set_log_path(const std::string& container_id, std::string path) {
  const std::lock_guard lock{state_->mutex};
  state_->log_paths[container_id] = std::move(path);
}

void FakeRuntime::set_resources(const std::string& container_id, runtime::v1::LinuxContainerResources resources) {
  const std::lock_guard lock{state_->mutex};
  state_->resources[container_id] = std::move(resources);
}

void FakeRuntime::set_config(std::string json) {
  const std::lock_guard lock{state_->mutex};
  state_->config = std::move(json);
}

void FakeRuntime::set_cgroup_driver(runtime::v1::CgroupDriver driver) {
  const std::lock_guard lock{state_->mutex};
  state_->cgroup_driver = driver;
}

void FakeRuntime::tell(int events, const std::string& container_id) {
  runtime::v1::ContainerEventResponse event;
  event.set_container_id(container_id);
  event.set_container_event_type(runtime::v1::CONTAINER_STARTED_EVENT);
  const auto bytes = event.SerializeAsString();
  state_->each_listener([&](Listener& listener) { listener.tell(bytes, events); });
}

void FakeRuntime::tell_garbage() {
  state_->each_listener([](Listener& listener) { listener.tell("\xff\xff\xff", 1); });
}

void FakeRuntime::end_streams(int grpc_code) {
  state_->each_listener(
      [&](Listener& listener) { listener.end({static_cast<grpc::StatusCode>(grpc_code), "ended by the test"}); });
}

int FakeRuntime::listeners() const {
  const std::lock_guard lock{state_->mutex};
  return static_cast<int>(state_->listeners.size());
}

int FakeRuntime::told() const {
  const std::lock_guard lock{state_->mutex};
  return state_->told;
}

void FakeRuntime::remove_sandbox(const std::string& id) {
  const std::lock_guard lock{state_->mutex};
  state_->sandboxes.erase(id);
}

void FakeRuntime::remove_container(const std::string& id) {
  const std::lock_guard lock{state_->mutex};
  state_->containers.erase(id);
}

runtime::v1::PodSandboxState FakeRuntime::sandbox_state(const std::string& id) const {
  const std::lock_guard lock{state_->mutex};
  return state_->sandboxes.at(id).object.state();
}

runtime::v1::ContainerState FakeRuntime::container_state(const std::string& id) const {
  const std::lock_guard lock{state_->mutex};
  return state_->containers.at(id).object.state();
}

std::vector<std::string> FakeRuntime::done() const {
  const std::lock_guard lock{state_->mutex};
  return state_->done;
}

std::vector<std::string> FakeRuntime::cpusets() const {
  const std::lock_guard lock{state_->mutex};
  return state_->cpusets;
}

std::vector<std::string> FakeRuntime::commands() const {
  const std::lock_guard lock{state_->mutex};
  return state_->commands;
}

void FakeRuntime::write_bytes(std::size_t count) {
  const std::lock_guard lock{state_->mutex};
  state_->written = std::string(count, 'x');
}

void FakeRuntime::exit_with(int code) {
  const std::lock_guard lock{state_->mutex};
  state_->exit_code = code;
}

void FakeRuntime::set_address(const std::string& sandbox_id, std::string ip) {
  const std::lock_guard lock{state_->mutex};
  state_->addresses.insert_or_assign(sandbox_id, std::move(ip));
}

std::vector<FakeRuntime::Stop> FakeRuntime::stops() const {
  const std::lock_guard lock{state_->mutex};
  return state_->stops;
}

void FakeRuntime::hang(const std::string& method) {
  const std::lock_guard lock{state_->mutex};
  state_->hanging.insert(method);
}

void FakeRuntime::fail(const std::string& method, int grpc_code, const std::string& message) {
  const std::lock_guard lock{state_->mutex};
  state_->failing[method] = {static_cast<grpc::StatusCode>(grpc_code), message};
}

void FakeRuntime::recover(const std::string& method) {
  const std::lock_guard lock{state_->mutex};
  state_->hanging.erase(method);
  state_->failing.erase(method);
}

void FakeRuntime::meanwhile(const std::string& method, std::function<void()> action) {
  const std::lock_guard lock{state_->mutex};
  state_->meanwhile[method] = std::move(action);
}

int FakeRuntime::calls(std::string_view method) const {
  const std::lock_guard lock{state_->mutex};
  const auto found = state_->calls.find(method);
  return found == state_->calls.end() ? 0 : found->second;
}

std::chrono::seconds FakeRuntime::last_grace() const {
  const std::lock_guard lock{state_->mutex};
  return state_->stops.empty() ? std::chrono::seconds{-1} : state_->stops.back().grace;
}

}  // namespace evictd::test
