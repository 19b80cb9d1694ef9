#include "evict/image_records.hpp"

#include <api.pb.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace evictd::evict {

void ImageRecords::note(const cri::v1::ListImagesResponse& images, const IsUsed& is_used, core::Instant time) {
  std::map<std::string, Record> present;
  for (const auto& image : images.images()) {
    const auto known = records_.find(image.id());
    auto& record = present[image.id()];
    record = known == records_.end() ? Record{.first_seen = time} : known->second;
    if (is_used(image)) record.last_used = time;
  }
  records_ = std::move(present);
}

std::vector<cri::v1::Image> ImageRecords::may_go(const cri::v1::ListImagesResponse& images, core::Instant begun,
                                                 core::Duration minimum_age) const {
  std::vector<cri::v1::Image> old;
  for (const auto& image : images.images()) {
    const auto known = records_.find(image.id());
    if (known == records_.end()) continue;
    const auto& record = known->second;
    if (record.last_used < begun && begun - record.first_seen >= minimum_age) old.push_back(image);
  }
  std::ranges::sort(old, {}, [&](const cri::v1::Image& image) {
    const auto& record = records_.at(image.id());
    return std::tuple(record.last_used, record.first_seen, std::string_view(image.id()));
  });
  return old;
}

}  // namespace evictd::evict
