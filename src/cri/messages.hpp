#pragma once

// The messages of CRI v1, announced. A file that reads one, or waits for one, includes <api.pb.h>, whose 27,000 lines
// every file that knows the agent would have to read otherwise.
namespace runtime::v1 {
class Container;
class ContainerConfig;
class ContainerEventResponse;
class ContainerStatsResponse;
class ContainerStatus;
class ContainerStatusResponse;
class CreateContainerRequest;
class CreateContainerResponse;
class ExecSyncResponse;
class Image;
class ImageFsInfoResponse;
class ImageStatusResponse;
class ListContainerStatsResponse;
class ListContainersResponse;
class ListImagesResponse;
class ListPodSandboxResponse;
class PodSandbox;
class PodSandboxConfig;
class PodSandboxStatusResponse;
class RemoveContainerResponse;
class RemoveImageResponse;
class RemovePodSandboxResponse;
class RunPodSandboxRequest;
class RunPodSandboxResponse;
class RuntimeConfigResponse;
class StartContainerResponse;
class StatusResponse;
class StopContainerResponse;
class StopPodSandboxResponse;
class UpdateContainerResourcesResponse;
class VersionResponse;
}  // namespace runtime::v1

namespace evictd::cri {

namespace v1 = ::runtime::v1;

}  // namespace evictd::cri
