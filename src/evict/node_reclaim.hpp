#pragma once
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/awaited.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/image_ages.hpp"
#include "cri/client.hpp"
#include "cri/messages.hpp"
#include "evict/image_volumes.hpp"
#include "evict/log_reclaim.hpp"

namespace evictd::evict {

struct NodeReclaimerOptions {
  /// After this no further removal begins; one under way may take its own deadline (cri/client.hpp) beyond it. A
  /// runtime that never answers must not keep pods from being evicted; that many images a slow disk does remove.
  core::Duration time_limit = std::chrono::minutes(2);
  /// How long ago an image must have been seen for the first time to be removed: the KubeletConfiguration's
  /// imageMinimumGCAge.
  core::Duration minimum_image_age{};
};

struct ReclaimResult {
  std::size_t containers_removed = 0;
  std::size_t sandboxes_removed = 0;
  std::size_t images_removed = 0;
  std::vector<Error> errors{};  ///< one line each, in the order they happened; for the caller to log
};

/// Frees the disk from what no running pod needs, as the kubelet does under disk pressure before it evicts a pod.
///
/// For the reactor's thread; the client must outlive it, and it must outlive its coroutines.
class NodeReclaimer {
 public:
  /// `logs` must outlive this; null: logs stay.
  explicit NodeReclaimer(cri::Client& runtime, NodeReclaimerOptions options = {}, LogReclaimer* logs = nullptr)
      : runtime_{runtime}, options_{options}, logs_{logs} {}

  /// Removes, one after the other, all unused containers with their logs and then dead sandboxes (evict/unused.hpp),
  /// and the logs of pods that are gone; and then all images that no container uses or has mounted, but never a pinned
  /// one, the sandboxes' image, or one that is too young or was in use when this step began (core/image_ages.hpp).
  ///
  /// A removal that fails is in the result and does not stop the rest; only a runtime that is gone does, and the time
  /// limit. Images stay where it cannot be told which is the sandboxes', or what a container has mounted: the runtime
  /// is asked once for each container's status, only by this step.
  ///
  /// One that is asked for while another is under way begins when that is over: what it would list is being removed.
  [[nodiscard]] boost::asio::awaitable<ReclaimResult> run(bool containers, bool images);

  /// Looks which images are there and which are used: from then on an image grows old, and which of them goes first
  /// follows from it. To be called when the runtime appears and now and then; the kubelet looks every 5 minutes. run()
  /// looks as well. Of volumes it knows what run() has asked for.
  [[nodiscard]] boost::asio::awaitable<Result<void>> observe_images();

  /// Looks which pods are gone whose logs are there (evict/log_reclaim.hpp). As often.
  [[nodiscard]] boost::asio::awaitable<void> observe_logs();

 private:
  struct Run;
  using End = async::Awaited<bool>;  // nothing is delivered
  using Image = cri::v1::Image;
  using IsUsed = std::function<bool(const Image&)>;

  boost::asio::awaitable<void> remove_containers(Run& run);
  boost::asio::awaitable<void> remove_sandboxes(Run& run);
  boost::asio::awaitable<void> remove_sandbox(Run& run, std::string id);
  boost::asio::awaitable<void> remove_logs_of_gone_pods(Run& run);
  boost::asio::awaitable<void> remove_images(Run& run);
  boost::asio::awaitable<void> remove_image_if_unused(Run& run, const Image& image);
  boost::asio::awaitable<bool> learn_volumes(Run& run, const cri::v1::ListContainersResponse& containers);
  /// The list must outlive it.
  [[nodiscard]] IsUsed used_by(const cri::v1::ListContainersResponse& containers) const;
  void note(const cri::v1::ListImagesResponse& images, const cri::v1::ListContainersResponse& containers,
            core::Instant begun);
  boost::asio::awaitable<Result<std::string>> sandbox_image_id();

  cri::Client& runtime_;
  NodeReclaimerOptions options_;
  core::ImageAges ages_;
  ImageVolumes volumes_;
  LogReclaimer* logs_;
  std::shared_ptr<End> under_way_;  // of the run that is
};

}  // namespace evictd::evict
