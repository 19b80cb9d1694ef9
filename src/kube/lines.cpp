#include "kube/lines.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace evictd::kube {

Result<std::optional<std::string>> Lines::next() {
  for (;;) {
    const auto end = buffer_.find('\n', searched_);
    const auto length = std::min(end, buffer_.size()) - begin_;
    if (length > longest_) return fail(fmt::format("a line is longer than {} KiB", longest_ / 1024));
    if (end == std::string::npos) {
      buffer_.erase(0, begin_);
      begin_ = 0;
      searched_ = buffer_.size();
      return std::nullopt;
    }
    auto line = buffer_.substr(begin_, length);
    begin_ = searched_ = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) return line;
  }
}

}  // namespace evictd::kube
