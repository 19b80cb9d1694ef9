#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "cri/messages.hpp"

namespace evictd::evict {

/// Since when each of the node's images has been seen, and when it was last seen in use. CRI tells neither when an
/// image was pulled nor when a container last had it, so all that is known comes from looking. Pure. (kubelet 1.36,
/// image_gc_manager.go: imageRecord)
class ImageRecords {
 public:
  using IsUsed = std::function<bool(const cri::v1::Image&)>;

  /// A look that began at `time`; `images` are all that there are. An image that was not there at the look before is
  /// new, and at the first look of all every image is: evictd cannot know how long they have been there. (kubelet 1.36:
  /// detectImages; kubelets of 2023 and before took those of their first look for old)
  void note(const cri::v1::ListImagesResponse& images, const IsUsed& is_used, core::Instant time);

  /// Those of the noted images that may go in a reclaim that began at `begun`, in the order in which they go: the one
  /// whose last use was seen longest ago (never: before all), then the one first seen longest ago.
  ///
  /// An image stays that was in use since `begun`, and one first seen less than `minimum_age` before: it may have been
  /// pulled for a container that is about to be made. A negative age keeps none. (kubelet 1.36: freeSpace)
  [[nodiscard]] std::vector<cri::v1::Image> may_go(const cri::v1::ListImagesResponse& images, core::Instant begun,
                                                   core::Duration minimum_age) const;

 private:
  struct Record {
    core::Instant first_seen;
    core::Instant last_used = core::Instant::min();
  };

  std::map<std::string, Record> records_;  // by image id
};

}  // namespace evictd::evict
