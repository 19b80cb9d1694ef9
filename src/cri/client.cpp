#include "cri/client.hpp"

#include <algorithm>
#include <utility>

#include "cri/call.hpp"
#include "cri/channel.hpp"
#include "cri/stream_call.hpp"

namespace evictd::cri {
namespace {

using Runtime = v1::RuntimeService::StubInterface;
using Images = v1::ImageService::StubInterface;

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
  return call(channel_, "Version", &Runtime::PrepareAsyncVersion, std::move(request), deadline.value_or(query_));
}

Awaitable<v1::StatusResponse> Client::status(std::optional<Deadline> deadline) {
  v1::StatusRequest request;
  request.set_verbose(true);
  return call(channel_, "Status", &Runtime::PrepareAsyncStatus, std::move(request), deadline.value_or(query_));
}

Awaitable<v1::RuntimeConfigResponse> Client::runtime_config(std::optional<Deadline> deadline) {
  return call(channel_, "RuntimeConfig", &Runtime::PrepareAsyncRuntimeConfig, {}, deadline.value_or(query_));
}

std::unique_ptr<Stream<v1::ContainerEventResponse>> Client::container_events() {
  return std::make_unique<OpenStream<v1::GetEventsRequest, v1::ContainerEventResponse>>(
      channel_, "GetContainerEvents", &Runtime::PrepareAsyncGetContainerEvents, v1::GetEventsRequest{});
}

Awaitable<v1::ListPodSandboxResponse> Client::list_pod_sandboxes(std::optional<Deadline> deadline) {
  return call(channel_, "ListPodSandbox", &Runtime::PrepareAsyncListPodSandbox, {}, deadline.value_or(query_));
}

Awaitable<v1::ListContainersResponse> Client::list_containers(std::optional<Deadline> deadline) {
  return call(channel_, "ListContainers", &Runtime::PrepareAsyncListContainers, {}, deadline.value_or(query_));
}

Awaitable<v1::PodSandboxStatusResponse> Client::pod_sandbox_status(std::string sandbox_id,
                                                                   std::optional<Deadline> deadline) {
  v1::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(std::move(sandbox_id));
  request.set_verbose(true);
  return call(channel_, "PodSandboxStatus", &Runtime::PrepareAsyncPodSandboxStatus, std::move(request),
              deadline.value_or(query_));
}

Awaitable<v1::ContainerStatusResponse> Client::container_status(std::string container_id,
                                                                std::optional<Deadline> deadline) {
  v1::ContainerStatusRequest request;
  request.set_container_id(std::move(container_id));
  request.set_verbose(true);
  return call(channel_, "ContainerStatus", &Runtime::PrepareAsyncContainerStatus, std::move(request),
              deadline.value_or(query_));
}

Awaitable<v1::ContainerStatusResponse> Client::plain_container_status(std::string container_id,
                                                                      std::optional<Deadline> deadline) {
  v1::ContainerStatusRequest request;
  request.set_container_id(std::move(container_id));
  return call(channel_, "ContainerStatus", &Runtime::PrepareAsyncContainerStatus, std::move(request),
              deadline.value_or(query_));
}

Awaitable<v1::ContainerStatsResponse> Client::container_stats(std::string container_id,
                                                              std::optional<Deadline> deadline) {
  v1::ContainerStatsRequest request;
  request.set_container_id(std::move(container_id));
  return call(channel_, "ContainerStats", &Runtime::PrepareAsyncContainerStats, std::move(request),
              deadline.value_or(query_));
}

Awaitable<v1::ListContainerStatsResponse> Client::list_container_stats(std::optional<Deadline> deadline) {
  return call(channel_, "ListContainerStats", &Runtime::PrepareAsyncListContainerStats, {}, deadline.value_or(query_));
}

Awaitable<v1::UpdateContainerResourcesResponse> Client::update_cpuset(std::string container_id, std::string cpus,
                                                                      std::string mems,
                                                                      std::optional<Deadline> deadline) {
  v1::UpdateContainerResourcesRequest request;
  request.set_container_id(std::move(container_id));
  request.mutable_linux()->set_cpuset_cpus(std::move(cpus));
  request.mutable_linux()->set_cpuset_mems(std::move(mems));
  return call(channel_, "UpdateContainerResources", &Runtime::PrepareAsyncUpdateContainerResources, std::move(request),
              deadline.value_or(query_));
}

Awaitable<v1::ExecSyncResponse> Client::exec_sync(std::string container_id, const std::vector<std::string>& command,
                                                  std::chrono::seconds limit, Deadline beyond_limit) {
  v1::ExecSyncRequest request;
  request.set_container_id(std::move(container_id));
  request.mutable_cmd()->Add(command.begin(), command.end());
  request.set_timeout(std::max(limit, std::chrono::seconds{1}).count());  // 0 is no limit
  return call(channel_, "ExecSync", &Runtime::PrepareAsyncExecSync, std::move(request), limit + beyond_limit,
              channel_->bounded_stub());
}

Awaitable<v1::StopContainerResponse> Client::stop_container(std::string container_id, std::chrono::seconds grace,
                                                            Deadline beyond_grace) {
  v1::StopContainerRequest request;
  request.set_container_id(std::move(container_id));
  request.set_timeout(grace.count());
  return call(channel_, "StopContainer", &Runtime::PrepareAsyncStopContainer, std::move(request), grace + beyond_grace);
}

Awaitable<v1::RemoveContainerResponse> Client::remove_container(std::string container_id, Deadline deadline) {
  v1::RemoveContainerRequest request;
  request.set_container_id(std::move(container_id));
  return call(channel_, "RemoveContainer", &Runtime::PrepareAsyncRemoveContainer, std::move(request), deadline);
}

Awaitable<v1::StopPodSandboxResponse> Client::stop_pod_sandbox(std::string sandbox_id, Deadline deadline) {
  v1::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(std::move(sandbox_id));
  return call(channel_, "StopPodSandbox", &Runtime::PrepareAsyncStopPodSandbox, std::move(request), deadline);
}

Awaitable<v1::RemovePodSandboxResponse> Client::remove_pod_sandbox(std::string sandbox_id, Deadline deadline) {
  v1::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(std::move(sandbox_id));
  return call(channel_, "RemovePodSandbox", &Runtime::PrepareAsyncRemovePodSandbox, std::move(request), deadline);
}

Awaitable<v1::ListImagesResponse> Client::list_images(std::optional<Deadline> deadline) {
  return call(channel_, "ListImages", &Images::PrepareAsyncListImages, {}, deadline.value_or(query_));
}

Awaitable<v1::ImageStatusResponse> Client::image_status(std::string image, std::optional<Deadline> deadline) {
  v1::ImageStatusRequest request;
  request.mutable_image()->set_image(std::move(image));
  return call(channel_, "ImageStatus", &Images::PrepareAsyncImageStatus, std::move(request), deadline.value_or(query_));
}

Awaitable<v1::ImageFsInfoResponse> Client::image_fs_info(std::optional<Deadline> deadline) {
  return call(channel_, "ImageFsInfo", &Images::PrepareAsyncImageFsInfo, {}, deadline.value_or(query_));
}

Awaitable<v1::RemoveImageResponse> Client::remove_image(std::string image, Deadline deadline) {
  v1::RemoveImageRequest request;
  request.mutable_image()->set_image(std::move(image));
  return call(channel_, "RemoveImage", &Images::PrepareAsyncRemoveImage, std::move(request), deadline);
}

Awaitable<v1::RunPodSandboxResponse> Client::run_pod_sandbox(v1::RunPodSandboxRequest request, Deadline deadline) {
  return call(channel_, "RunPodSandbox", &Runtime::PrepareAsyncRunPodSandbox, std::move(request), deadline);
}

Awaitable<v1::CreateContainerResponse> Client::create_container(v1::CreateContainerRequest request, Deadline deadline) {
  return call(channel_, "CreateContainer", &Runtime::PrepareAsyncCreateContainer, std::move(request), deadline);
}

Awaitable<v1::StartContainerResponse> Client::start_container(std::string container_id, Deadline deadline) {
  v1::StartContainerRequest request;
  request.set_container_id(std::move(container_id));
  return call(channel_, "StartContainer", &Runtime::PrepareAsyncStartContainer, std::move(request), deadline);
}

}  // namespace evictd::cri
