#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/running_pods.hpp"
#include "api/admission_requests.hpp"
#include "core/pod.hpp"

namespace evictd::agent {

/// The pod as it counts once its resize was admitted (core::allocate_resize).
[[nodiscard]] core::PodPtr resized_pod(const core::Pod& pod, const core::Pod& desired);

/// The one of the pods that has the container, as the update would have it. Nothing: none has it.
[[nodiscard]] std::optional<core::Pod> updated_pod(const api::ContainerUpdate& update, const core::PodList& pods,
                                                   const RunningPods& running);

/// Whether the resize is one that has to be asked about. (kubelet 1.36: isResizeIncreasingRequests)
[[nodiscard]] bool requests_more(const core::Pod& before, const core::Pod& desired);

/// The resizes in place that were admitted, of which nobody has told yet. On the reactor.
class PodResizes {
 public:
  /// What take_back() takes.
  struct Added {
    std::string uid;
    core::PodPtr desired;
    core::PodPtr earlier;  ///< as it was resized before; null: it was not
  };

  [[nodiscard]] bool empty() const { return resizes_.empty(); }
  [[nodiscard]] bool contains(std::string_view uid) const { return resizes_.contains(uid); }

  /// The pod counts as it is desired from now on. `told`: as it is told of now; of no account where a resize of it is
  /// there already. `update`: what the resize was asked for as, where a container is resized.
  Added add(const core::PodPtr& told, const core::Pod& desired, std::optional<api::ContainerUpdate> update = {});

  /// The pod counts as before, unless its resize has been forgotten meanwhile, or another one has come.
  void take_back(const Added& added);
  /// The runtime has not carried this one out: the same, where the pod was resized by it last.
  void refused(const api::ContainerUpdate& update);

  /// Puts the pods as they are to be in place of those that have a resize.
  void apply(core::PodList& pods) const;

  /// Forgets those of pods that are told of otherwise than they were when they were resized, and of pods that are not
  /// told of at all unless `is_coming` says of their uid that they will be.
  void pods_changed(const core::PodList& pods, const std::function<bool(const std::string&)>& is_coming);

 private:
  struct Resize {
    core::PodPtr before;  ///< as it was told of then
    core::PodPtr desired;
    core::PodPtr earlier{};                        ///< Added::earlier, of the last one
    std::optional<api::ContainerUpdate> update{};  ///< by which it was resized last
  };

  std::map<std::string, Resize, std::less<>> resizes_{};  // by uid
};

}  // namespace evictd::agent
