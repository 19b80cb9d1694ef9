#include "devices/fake_plugin.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "fixture/patience.hpp"

namespace evictd::test {

using namespace std::chrono_literals;

::v1beta1::Device plugin_device(std::string id, std::vector<std::int64_t> numa_nodes, bool healthy) {
  ::v1beta1::Device device;
  device.set_id(std::move(id));
  device.set_health(healthy ? "Healthy" : "Unhealthy");
  for (const auto node : numa_nodes) device.mutable_topology()->add_nodes()->set_id(node);
  return device;
}

struct FakePlugin::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<::v1beta1::Device> devices;
  std::uint64_t version = 1;
  bool stopping = false;
  ::v1beta1::DevicePluginOptions options;
  Allocate allocate;
  Prefer prefer;
  std::set<std::string> hanging;
  std::map<std::string, grpc::Status> failing;
  std::vector<std::string> calls;
};

class FakePlugin::Service final : public ::v1beta1::DevicePlugin::Service {
 public:
  explicit Service(State& state) : state_(state) {}

 private:
  using Context = grpc::ServerContext;

  /// OK: the call may be answered.
  grpc::Status enter(const Context* context, const std::string& method, std::string details = {}) {
    std::unique_lock lock{state_.mutex};
    state_.calls.push_back(method + details);
    while (state_.hanging.contains(method) && !state_.stopping && !context->IsCancelled())
      state_.changed.wait_for(lock, 10ms);
    if (const auto found = state_.failing.find(method); found != state_.failing.end()) return found->second;
    return grpc::Status::OK;
  }

  grpc::Status GetDevicePluginOptions(Context* context, const ::v1beta1::Empty*,
                                      ::v1beta1::DevicePluginOptions* response) override {
    if (auto status = enter(context, "GetDevicePluginOptions"); !status.ok()) return status;
    const std::lock_guard lock{state_.mutex};
    *response = state_.options;
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(Context* context, const ::v1beta1::Empty*,
                            grpc::ServerWriter<::v1beta1::ListAndWatchResponse>* writer) override {
    if (auto status = enter(context, "ListAndWatch"); !status.ok()) return status;
    std::uint64_t told = 0;
    std::unique_lock lock{state_.mutex};
    while (!state_.stopping && !context->IsCancelled()) {
      if (told == state_.version) {
        state_.changed.wait_for(lock, 10ms);
        continue;
      }
      told = state_.version;
      ::v1beta1::ListAndWatchResponse response;
      for (const auto& device : state_.devices) *response.add_devices() = device;
      lock.unlock();
      writer->Write(response);
      lock.lock();
    }
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(Context* context, const ::v1beta1::PreferredAllocationRequest* request,
                                      ::v1beta1::PreferredAllocationResponse* response) override {
    if (auto status = enter(context, "GetPreferredAllocation"); !status.ok()) return status;
    const std::lock_guard lock{state_.mutex};
    if (state_.prefer) return state_.prefer(*request, *response);
    const auto& asked = request->container_requests(0);
    std::vector<std::string> ids(asked.available_deviceids().begin(), asked.available_deviceids().end());
    std::ranges::sort(ids, std::greater{});
    auto& answer = *response->add_container_responses();
    for (std::size_t i = 0; i < ids.size() && i < static_cast<std::size_t>(asked.allocation_size()); ++i)
      answer.add_deviceids(ids[i]);
    return grpc::Status::OK;
  }

  grpc::Status Allocate(Context* context, const ::v1beta1::AllocateRequest* request,
                        ::v1beta1::AllocateResponse* response) override {
    std::string ids;
    for (const auto& id : request->container_requests(0).devices_ids()) ids += " " + id;
    if (auto status = enter(context, "Allocate", ids); !status.ok()) return status;
    const std::lock_guard lock{state_.mutex};
    if (state_.allocate) return state_.allocate(*request, *response);
    (*response->add_container_responses()->mutable_envs())["DEVICES"] = ids.substr(1);
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(Context* context, const ::v1beta1::PreStartContainerRequest* request,
                                 ::v1beta1::PreStartContainerResponse*) override {
    std::string ids;
    for (const auto& id : request->devices_ids()) ids += " " + id;
    return enter(context, "PreStartContainer", ids);
  }

  State& state_;
};

FakePlugin::FakePlugin(std::string socket)
    : socket_(std::move(socket)), state_(std::make_unique<State>()), service_(std::make_unique<Service>(*state_)) {}

FakePlugin::~FakePlugin() { stop(); }

void FakePlugin::start() {
  {
    const std::lock_guard lock{state_->mutex};
    state_->stopping = false;
  }
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  if (longest_connection_)
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, static_cast<int>(longest_connection_->count()));
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("cannot serve on " + socket_);
}

void FakePlugin::stop() {
  if (!server_) return;
  {
    const std::lock_guard lock{state_->mutex};
    state_->stopping = true;
    state_->changed.notify_all();
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

void FakePlugin::tell(std::vector<::v1beta1::Device> devices) {
  const std::lock_guard lock{state_->mutex};
  state_->devices = std::move(devices);
  ++state_->version;
  state_->changed.notify_all();
}

void FakePlugin::set_options(bool pre_start, bool prefers) {
  const std::lock_guard lock{state_->mutex};
  state_->options.set_pre_start_required(pre_start);
  state_->options.set_get_preferred_allocation_available(prefers);
}

void FakePlugin::on_allocate(Allocate answer) {
  const std::lock_guard lock{state_->mutex};
  state_->allocate = std::move(answer);
}

void FakePlugin::on_prefer(Prefer answer) {
  const std::lock_guard lock{state_->mutex};
  state_->prefer = std::move(answer);
}

void FakePlugin::hang(const std::string& method) {
  const std::lock_guard lock{state_->mutex};
  state_->hanging.insert(method);
}

void FakePlugin::go_on(const std::string& method) {
  const std::lock_guard lock{state_->mutex};
  state_->hanging.erase(method);
}

void FakePlugin::fail(const std::string& method, const grpc::Status& status) {
  const std::lock_guard lock{state_->mutex};
  state_->failing[method] = status;
}

std::vector<std::string> FakePlugin::calls() const {
  const std::lock_guard lock{state_->mutex};
  return state_->calls;
}

bool FakePlugin::was_called(std::string_view call) const {
  const auto all = calls();
  return std::ranges::find(all, call) != all.end();
}

grpc::Status register_plugin(const std::string& socket, const std::string& resource, const std::string& endpoint,
                             const std::string& version) {
  const auto stub =
      ::v1beta1::Registration::NewStub(grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  context.set_wait_for_ready(true);
  ::v1beta1::RegisterRequest request;
  request.set_version(version);
  request.set_resource_name(resource);
  request.set_endpoint(endpoint);
  ::v1beta1::Empty response;
  return stub->Register(&context, request, &response);
}

}  // namespace evictd::test
