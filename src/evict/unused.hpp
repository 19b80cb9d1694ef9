#pragma once
#include <set>
#include <string>
#include <vector>

#include "cri/messages.hpp"

// Which of the runtime's objects are not needed any more, by the runtime's lists alone. Pure.
//
// The rules are those by which the kubelet deletes "all unused" under disk pressure (containerGC.GarbageCollect with
// evictNonDeletedPods, imageGCManager.DeleteUnusedImages). It knows from the API server which pods live; here a pod
// lives while one of its sandboxes is ready or one of its containers runs. A pod whose sandbox died and which the
// kubelet is about to restart is therefore dead for the moment, and what is left of it goes.
namespace evictd::evict {

/// Containers to remove, the oldest first.
///
/// Of a living pod: those that have exited, except the latest of each name, as the kubelet keeps one
/// (maximum-dead-containers-per-container, 1 by default): it says why the container was restarted, and an init
/// container's says that it is done. Of a dead pod: all that do not run.
///
/// The containers must have been listed before the sandboxes: then one whose sandbox is not listed has lost it, and one
/// whose sandbox is not ready will never start.
[[nodiscard]] std::vector<::runtime::v1::Container> unused_containers(
    const ::runtime::v1::ListContainersResponse& containers, const ::runtime::v1::ListPodSandboxResponse& sandboxes);

/// Ids of the sandboxes that are not ready and have no container.
///
/// The sandboxes must have been listed before the containers: removing a sandbox kills what runs in it, and no
/// container starts in one that has been seen not ready.
[[nodiscard]] std::vector<std::string> unused_sandboxes(const ::runtime::v1::ListPodSandboxResponse& sandboxes,
                                                        const ::runtime::v1::ListContainersResponse& containers);

/// Whether a container uses the image, running or not: the kubelet makes the successor of an exited one from the same
/// image. The sandboxes' image is not among these: CRI does not list sandboxes as containers.
/// `mounted`: what the containers have mounted as volumes (evict/image_volumes.hpp), which is in use as well.
/// (kubelet 1.36, image_gc_manager.go: detectImages)
[[nodiscard]] bool is_used(const ::runtime::v1::Image& image, const ::runtime::v1::ListContainersResponse& containers,
                           const std::set<std::string>& mounted);

}  // namespace evictd::evict
