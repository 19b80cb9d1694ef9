#include "cri/client.hpp"

#include <api.pb.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cri/channel.hpp"
#include "cri/stream_call.hpp"

namespace evictd::cri {
namespace {

/// Of a command, in bytes.
constexpr std::size_t most_output = 256 << 10;

template <class Response>
Awaitable<Response> call(std::shared_ptr<Channel> channel, Question question) {
  const auto response = std::make_shared<Response>();
  auto answered = co_await Channel::call(std::move(channel), std::move(question), response);
  if (!answered) co_return std::unexpected(std::move(answered.error()));
  co_return std::move(*response);
}

template <class Response, class Request>
Awaitable<Response> ask(std::shared_ptr<Channel> channel, std::string_view service, std::string_view method,
                        const Request& request, Deadline deadline) {
  return call<Response>(
      std::move(channel),
      {.service = service, .method = method, .message = request.SerializeAsString(), .deadline = deadline});
}

}  // namespace

Client::Client(asio::any_io_executor reactor, std::string endpoint, Deadline query)
    : channel_(std::make_shared<Channel>(std::move(reactor), std::move(endpoint))), query_(query) {}

Client::~Client() { channel_->close(); }

const std::string& Client::endpoint() const { return channel_->endpoint(); }

void Client::watch(PresenceListener& listener) { channel_->watch(listener); }

void Client::observe(CallObserver* observer) { channel_->observe(observer); }

bool Client::connected() const { return channel_->connected(); }

Awaitable<v1::VersionResponse> Client::version(std::optional<Deadline> deadline) {
  v1::VersionRequest request;
  request.set_version("v1");
  return ask<v1::VersionResponse>(channel_, runtime_service, "Version", request, deadline.value_or(query_));
}

Awaitable<v1::StatusResponse> Client::status(std::optional<Deadline> deadline) {
  v1::StatusRequest request;
  request.set_verbose(true);
  return ask<v1::StatusResponse>(channel_, runtime_service, "Status", request, deadline.value_or(query_));
}

Awaitable<v1::RuntimeConfigResponse> Client::runtime_config(std::optional<Deadline> deadline) {
  return ask<v1::RuntimeConfigResponse>(channel_, runtime_service, "RuntimeConfig", v1::RuntimeConfigRequest{},
                                        deadline.value_or(query_));
}

std::unique_ptr<Stream<v1::ContainerEventResponse>> Client::container_events() {
  return std::make_unique<OpenStream<v1::ContainerEventResponse>>(
      channel_, Question{.service = runtime_service, .method = "GetContainerEvents"});
}

Awaitable<v1::ListPodSandboxResponse> Client::list_pod_sandboxes(std::optional<Deadline> deadline) {
  return ask<v1::ListPodSandboxResponse>(channel_, runtime_service, "ListPodSandbox", v1::ListPodSandboxRequest{},
                                         deadline.value_or(query_));
}

Awaitable<v1::ListContainersResponse> Client::list_containers(std::optional<Deadline> deadline) {
  return ask<v1::ListContainersResponse>(channel_, runtime_service, "ListContainers", v1::ListContainersRequest{},
                                         deadline.value_or(query_));
}

Awaitable<v1::PodSandboxStatusResponse> Client::pod_sandbox_status(std::string sandbox_id,
                                                                   std::optional<Deadline> deadline) {
  v1::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(std::move(sandbox_id));
  request.set_verbose(true);
  return ask<v1::PodSandboxStatusResponse>(channel_, runtime_service, "PodSandboxStatus", request,
                                           deadline.value_or(query_));
}

Awaitable<v1::ContainerStatusResponse> Client::container_status(std::string container_id,
                                                                std::optional<Deadline> deadline) {
  v1::ContainerStatusRequest request;
  request.set_container_id(std::move(container_id));
  request.set_verbose(true);
  return ask<v1::ContainerStatusResponse>(channel_, runtime_service, "ContainerStatus", request,
                                          deadline.value_or(query_));
}

Awaitable<v1::ContainerStatusResponse> Client::plain_container_status(std::string container_id,
                                                                      std::optional<Deadline> deadline) {
  v1::ContainerStatusRequest request;
  request.set_container_id(std::move(container_id));
  return ask<v1::ContainerStatusResponse>(channel_, runtime_service, "ContainerStatus", request,
                                          deadline.value_or(query_));
}

Awaitable<v1::ContainerStatsResponse> Client::container_stats(std::string container_id,
                                                              std::optional<Deadline> deadline) {
  v1::ContainerStatsRequest request;
  request.set_container_id(std::move(container_id));
  return ask<v1::ContainerStatsResponse>(channel_, runtime_service, "ContainerStats", request,
                                         deadline.value_or(query_));
}

Awaitable<v1::ListContainerStatsResponse> Client::list_container_stats(std::optional<Deadline> deadline) {
  return ask<v1::ListContainerStatsResponse>(channel_, runtime_service, "ListContainerStats",
                                             v1::ListContainerStatsRequest{}, deadline.value_or(query_));
}

Awaitable<v1::UpdateContainerResourcesResponse> Client::update_cpuset(std::string container_id, std::string cpus,
                                                                      std::string mems,
                                                                      std::optional<Deadline> deadline) {
  v1::UpdateContainerResourcesRequest request;
  request.set_container_id(std::move(container_id));
  request.mutable_linux()->set_cpuset_cpus(std::move(cpus));
  request.mutable_linux()->set_cpuset_mems(std::move(mems));
  return ask<v1::UpdateContainerResourcesResponse>(channel_, runtime_service, "UpdateContainerResources", request,
                                                   deadline.value_or(query_));
}

Awaitable<v1::ExecSyncResponse> Client::exec_sync(std::string container_id, const std::vector<std::string>& command,
                                                  std::chrono::seconds limit, Deadline beyond_limit) {
  v1::ExecSyncRequest request;
  request.set_container_id(std::move(container_id));
  request.mutable_cmd()->Add(command.begin(), command.end());
  request.set_timeout(std::max(limit, std::chrono::seconds{1}).count());  // 0 is no limit
  return call<v1::ExecSyncResponse>(channel_, {.service = runtime_service,
                                               .method = "ExecSync",
                                               .message = request.SerializeAsString(),
                                               .deadline = limit + beyond_limit,
                                               .largest_answer = most_output});
}

Awaitable<v1::StopContainerResponse> Client::stop_container(std::string container_id, std::chrono::seconds grace,
                                                            Deadline beyond_grace) {
  v1::StopContainerRequest request;
  request.set_container_id(std::move(container_id));
  request.set_timeout(grace.count());
  return ask<v1::StopContainerResponse>(channel_, runtime_service, "StopContainer", request, grace + beyond_grace);
}

Awaitable<v1::RemoveContainerResponse> Client::remove_container(std::string container_id, Deadline deadline) {
  v1::RemoveContainerRequest request;
  request.set_container_id(std::move(container_id));
  return ask<v1::RemoveContainerResponse>(channel_, runtime_service, "RemoveContainer", request, deadline);
}

Awaitable<v1::StopPodSandboxResponse> Client::stop_pod_sandbox(std::string sandbox_id, Deadline deadline) {
  v1::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(std::move(sandbox_id));
  return ask<v1::StopPodSandboxResponse>(channel_, runtime_service, "StopPodSandbox", request, deadline);
}

Awaitable<v1::RemovePodSandboxResponse> Client::remove_pod_sandbox(std::string sandbox_id, Deadline deadline) {
  v1::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(std::move(sandbox_id));
  return ask<v1::RemovePodSandboxResponse>(channel_, runtime_service, "RemovePodSandbox", request, deadline);
}

Awaitable<v1::ListImagesResponse> Client::list_images(std::optional<Deadline> deadline) {
  return ask<v1::ListImagesResponse>(channel_, images_service, "ListImages", v1::ListImagesRequest{},
                                     deadline.value_or(query_));
}

Awaitable<v1::ImageStatusResponse> Client::image_status(std::string image, std::optional<Deadline> deadline) {
  v1::ImageStatusRequest request;
  request.mutable_image()->set_image(std::move(image));
  return ask<v1::ImageStatusResponse>(channel_, images_service, "ImageStatus", request, deadline.value_or(query_));
}

Awaitable<v1::ImageFsInfoResponse> Client::image_fs_info(std::optional<Deadline> deadline) {
  return ask<v1::ImageFsInfoResponse>(channel_, images_service, "ImageFsInfo", v1::ImageFsInfoRequest{},
                                      deadline.value_or(query_));
}

Awaitable<v1::RemoveImageResponse> Client::remove_image(std::string image, Deadline deadline) {
  v1::RemoveImageRequest request;
  request.mutable_image()->set_image(std::move(image));
  return ask<v1::RemoveImageResponse>(channel_, images_service, "RemoveImage", request, deadline);
}

Awaitable<v1::RunPodSandboxResponse> Client::run_pod_sandbox(v1::RunPodSandboxRequest request, Deadline deadline) {
  return ask<v1::RunPodSandboxResponse>(channel_, runtime_service, "RunPodSandbox", request, deadline);
}

Awaitable<v1::CreateContainerResponse> Client::create_container(v1::CreateContainerRequest request, Deadline deadline) {
  return ask<v1::CreateContainerResponse>(channel_, runtime_service, "CreateContainer", request, deadline);
}

Awaitable<v1::StartContainerResponse> Client::start_container(std::string container_id, Deadline deadline) {
  v1::StartContainerRequest request;
  request.set_container_id(std::move(container_id));
  return ask<v1::StartContainerResponse>(channel_, runtime_service, "StartContainer", request, deadline);
}

Awaitable<void> Client::read_on(std::move_only_function<void()> work) {
  return Channel::read_on(channel_, std::move(work));
}

}  // namespace evictd::cri
