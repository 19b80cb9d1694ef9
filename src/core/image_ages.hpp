#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/duration.hpp"

namespace evictd::core {

/// One of the node's images, as a look finds it.
struct SeenImage {
  std::string id;
  bool used = false;  ///< by a container, running or not, also as a volume

  friend bool operator==(const SeenImage&, const SeenImage&) = default;
};

/// Since when each of the node's images has been seen, and when it was last seen in use. CRI tells neither when an
/// image was pulled nor when a container last had it, so all that is known comes from looking. (kubelet 1.36,
/// image_gc_manager.go: imageRecord)
class ImageAges {
 public:
  /// A look that began at `time`; `images` are all that there are. An image that was not there at the look before is
  /// new, and at the first look of all every image is: evictd cannot know how long they have been there. (kubelet 1.36:
  /// detectImages; kubelets of 2023 and before took those of their first look for old)
  void note(std::span<const SeenImage> images, Instant time);

  /// The image was removed: pulled again before the next look, it is new. (kubelet 1.36: freeImage)
  void forget(const std::string& id) { records_.erase(id); }

  /// Ids of those of the last look that may go in a reclaim that began at `begun`, in the order in which they go: the
  /// one whose last use was seen longest ago (never: before all), then the one first seen longest ago, then by id.
  ///
  /// An image stays that was in use since `begun`, and one first seen less than `minimum_age` before: it may have been
  /// pulled for a container that is about to be made. A negative age keeps none. (kubelet 1.36: freeSpace)
  [[nodiscard]] std::vector<std::string> may_go(Instant begun, Duration minimum_age) const;

 private:
  struct Record {
    Instant first_seen;
    Instant last_used = Instant::min();
  };

  std::map<std::string, Record> records_;  // by image id
};

}  // namespace evictd::core
