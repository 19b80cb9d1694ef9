#include "plugin.hpp"

#include <deviceplugin.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

namespace test_plugins {
namespace {

using namespace std::chrono_literals;

constexpr auto pace = 20ms;  // between two looks at its files

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  Service(const Arguments& arguments, const Kind& kind) : arguments_(arguments), kind_(kind) {}

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* response) override {
    *response = kind_.options();
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    std::string told = "nothing yet";
    while (!context->IsCancelled()) {
      if (auto text = devices_text(); text != told) {
        if (!writer->Write(parsed(text))) break;
        told = std::move(text);
      }
      std::this_thread::sleep_for(pace);
    }
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*, const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    const auto& asked = request->container_requests(0);
    const std::vector<std::string> available(asked.available_deviceids().begin(), asked.available_deviceids().end());
    auto& answer = *response->add_container_responses();
    for (auto& id : kind_.prefer(available, asked.allocation_size())) answer.add_deviceids(std::move(id));
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const auto& container : request->container_requests()) {
      const std::vector<std::string> ids(container.devices_ids().begin(), container.devices_ids().end());
      note("Allocate " + joined(ids));
      wait_while_held();
      *response->add_container_responses() = kind_.allocate(ids);
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse*) override {
    note("PreStartContainer " + joined({request->devices_ids().begin(), request->devices_ids().end()}));
    return grpc::Status::OK;
  }

 private:
  [[nodiscard]] std::string devices_text() const {
    std::ostringstream text;
    text << std::ifstream{arguments_.own / "devices"}.rdbuf();
    return text.str();
  }

  static v1beta1::ListAndWatchResponse parsed(const std::string& text) {
    v1beta1::ListAndWatchResponse response;
    std::istringstream lines{text};
    for (std::string id, health; lines >> id >> health;) {
      auto& device = *response.add_devices();
      device.set_id(id);
      device.set_health(health);
    }
    return response;
  }

  void wait_while_held() const {
    std::error_code ignored;
    while (std::filesystem::exists(arguments_.own / "hold", ignored)) std::this_thread::sleep_for(pace);
  }

  void note(const std::string& call) {
    const std::lock_guard lock{mutex_};
    std::ofstream{arguments_.own / "calls", std::ios::app} << call << '\n';
  }

  const Arguments& arguments_;
  const Kind& kind_;
  std::mutex mutex_;
};

/// Until whoever manages devices has taken it up.
bool register_once(const Arguments& arguments) {
  const auto channel = grpc::CreateChannel("unix:" + (arguments.directory / "kubelet.sock").native(),
                                           grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + 5s);
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(arguments.name + ".sock");
  request.set_resource_name(arguments.resource);
  v1beta1::Empty response;
  const auto status = v1beta1::Registration::NewStub(channel)->Register(&context, request, &response);
  if (!status.ok()) std::fprintf(stderr, "Register: %s\n", status.error_message().c_str());
  return status.ok();
}

/// Serves until its socket is gone.
void serve(const Arguments& arguments, const Kind& kind) {
  const auto socket = arguments.directory / (arguments.name + ".sock");
  Service service{arguments, kind};
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket.native(), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return std::this_thread::sleep_for(pace);
  std::error_code ignored;
  bool registered = false;
  while (std::filesystem::exists(socket, ignored)) {
    if (!registered) registered = register_once(arguments);
    std::this_thread::sleep_for(pace);
  }
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace

std::string joined(const std::vector<std::string>& ids) {
  std::string text;
  for (const auto& id : ids) text += (text.empty() ? "" : " ") + id;
  return text;
}

int run_plugin(int argc, char** argv, const Kind& kind) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s DIRECTORY RESOURCE NAME OWN\n", argv[0]);
    return 2;
  }
  const Arguments arguments{.directory = argv[1], .resource = argv[2], .name = argv[3], .own = argv[4]};
  for (;;) serve(arguments, kind);
}

}  // namespace test_plugins
