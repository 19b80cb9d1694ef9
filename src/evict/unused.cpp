#include "evict/unused.hpp"

#include <api.pb.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace evictd::evict {
namespace {

namespace v1 = ::runtime::v1;

/// The pods behind the lists, by uid.
class Pods {
 public:
  Pods(const v1::ListContainersResponse& containers, const v1::ListPodSandboxResponse& sandboxes) {
    for (const auto& sandbox : sandboxes.items()) {
      // A sandbox that no kubelet made may have no uid.
      const auto& uid = sandbox.metadata().uid().empty() ? sandbox.id() : sandbox.metadata().uid();
      uid_of_sandbox_.emplace(sandbox.id(), uid);
      if (sandbox.state() == v1::SANDBOX_READY) living_.insert(uid);
    }
    for (const auto& container : containers.containers())
      if (may_run(container)) living_.insert(uid_of(container));
  }

  /// "Unknown" is what containerd calls a container whose task it could not load: it may well run.
  [[nodiscard]] static bool may_run(const v1::Container& container) {
    return container.state() == v1::CONTAINER_RUNNING || container.state() == v1::CONTAINER_UNKNOWN;
  }

  [[nodiscard]] const std::string& uid_of(const v1::Container& container) const {
    const auto found = uid_of_sandbox_.find(container.pod_sandbox_id());
    return found == uid_of_sandbox_.end() ? container.pod_sandbox_id() : found->second;
  }

  [[nodiscard]] bool lives(const v1::Container& container) const { return living_.contains(uid_of(container)); }

 private:
  std::map<std::string, std::string> uid_of_sandbox_;
  std::set<std::string> living_;
};

std::string_view image_of(const v1::Container& container) {
  return container.image_ref().empty() ? container.image().image() : container.image_ref();
}

}  // namespace

std::vector<v1::Container> unused_containers(const v1::ListContainersResponse& containers,
                                             const v1::ListPodSandboxResponse& sandboxes) {
  const auto age = [](const v1::Container* c) { return std::tuple(c->created_at(), c->metadata().attempt()); };
  const Pods pods{containers, sandboxes};
  std::vector<const v1::Container*> unused;
  std::map<std::pair<std::string_view, std::string_view>, const v1::Container*> latest;  // by pod and name
  for (const auto& container : containers.containers()) {
    if (Pods::may_run(container)) continue;
    if (!pods.lives(container)) {
      unused.push_back(&container);
    } else if (container.state() == v1::CONTAINER_EXITED) {
      // The younger one stays; the other is superseded.
      auto& kept = latest[{pods.uid_of(container), container.metadata().name()}];
      const auto* older = &container;
      if (!kept || age(kept) < age(older)) std::swap(kept, older);
      if (older) unused.push_back(older);
    }
  }
  std::ranges::sort(unused, {}, age);

  std::vector<v1::Container> result;
  result.reserve(unused.size());
  for (const auto* container : unused) result.push_back(*container);
  return result;
}

std::vector<std::string> unused_sandboxes(const v1::ListPodSandboxResponse& sandboxes,
                                          const v1::ListContainersResponse& containers) {
  std::set<std::string_view> with_containers;
  for (const auto& container : containers.containers()) with_containers.insert(container.pod_sandbox_id());
  std::vector<std::string> unused;
  for (const auto& sandbox : sandboxes.items())
    if (sandbox.state() != v1::SANDBOX_READY && !with_containers.contains(sandbox.id())) unused.push_back(sandbox.id());
  return unused;
}

bool is_used(const v1::Image& image, const v1::ListContainersResponse& containers,
             const std::set<std::string>& mounted) {
  // containerd gives the image's id, other runtimes a digest.
  const auto is_named = [&](std::string_view reference) {
    return reference == image.id() ||
           std::ranges::find(image.repo_digests(), reference) != image.repo_digests().end() ||
           std::ranges::find(image.repo_tags(), reference) != image.repo_tags().end();
  };
  return std::ranges::any_of(containers.containers(), is_named, image_of) || std::ranges::any_of(mounted, is_named);
}

}  // namespace evictd::evict
