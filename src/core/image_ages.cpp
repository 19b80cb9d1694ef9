#include "core/image_ages.hpp"

#include <algorithm>
#include <utility>

namespace evictd::core {

void ImageAges::note(std::span<const SeenImage> images, Instant time) {
  std::map<std::string, Record> present;
  for (const auto& image : images) {
    const auto known = records_.find(image.id);
    auto& record = present[image.id];
    record = known == records_.end() ? Record{.first_seen = time} : known->second;
    if (image.used) record.last_used = time;
  }
  records_ = std::move(present);
}

std::vector<std::string> ImageAges::may_go(Instant begun, Duration minimum_age) const {
  std::vector<std::string> old;
  for (const auto& [id, record] : records_)
    if (record.last_used < begun && begun - record.first_seen >= minimum_age) old.push_back(id);
  // They come by id, and equals stay so.
  std::ranges::stable_sort(old, {}, [&](const std::string& id) {
    const auto& record = records_.at(id);
    return std::pair(record.last_used, record.first_seen);
  });
  return old;
}

}  // namespace evictd::core
