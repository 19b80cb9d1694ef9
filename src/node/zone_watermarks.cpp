#include "node/zone_watermarks.hpp"

#include <unistd.h>

#include <utility>

#include "config/yaml.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

std::string_view trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view{} : line.substr(begin);
}

}  // namespace

std::optional<core::ZoneWatermarks> parse_zoneinfo(std::string_view text, std::int64_t page_size) {
  core::ZoneWatermarks sum;
  bool found = false;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    for (const auto& [key, target] : {std::pair{"low", &sum.low}, std::pair{"min", &sum.min}})
      if (const auto pages = os::find_number(line, key)) {
        *target += *pages * page_size;
        found = true;
      }
  }
  return found ? std::optional(sum) : std::nullopt;
}

std::optional<core::ZoneWatermarks> read_zone_watermarks(const std::filesystem::path& proc) {
  const auto text = config::read_text_file(proc / "zoneinfo");
  return text ? parse_zoneinfo(*text, sysconf(_SC_PAGESIZE)) : std::nullopt;
}

}  // namespace evictd::node
