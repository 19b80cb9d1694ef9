#include "events/event_segment.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "core/number.hpp"
#include "evictd.pb.h"
#include "os/checksum.hpp"

namespace evictd::events {
namespace {

constexpr std::string_view prefix = "events-";
constexpr std::size_t digits = 20;
constexpr std::string_view any_header = "evictd events ";
constexpr std::size_t record_head = 8;

}  // namespace

std::string segment_name(std::uint64_t first) { return fmt::format("{}{:0{}}", prefix, first, digits); }

std::optional<std::uint64_t> parse_segment_name(std::string_view name) {
  if (!name.starts_with(prefix) || name.size() != prefix.size() + digits) return std::nullopt;
  name.remove_prefix(prefix.size());
  return core::whole_number<std::uint64_t>(name);
}

bool append_record(std::string& bytes, const v1::Event& event) {
  const auto size = event.ByteSizeLong();
  if (size > largest_record) return false;
  const auto begin = bytes.size();
  bytes.resize(begin + record_head);
  event.AppendToString(&bytes);
  os::put_32(bytes.data() + begin, static_cast<std::uint32_t>(bytes.size() - begin - record_head));
  const std::string_view record(bytes.data() + begin, bytes.size() - begin);
  // The length is under it, too: a torn one must not lead anywhere.
  os::put_32(bytes.data() + begin + 4, os::checksum(record.substr(0, 4), record.substr(record_head)));
  return true;
}

SegmentContent parse_segment(std::string_view bytes, std::uint64_t after) {
  SegmentContent content;
  if (!bytes.starts_with(segment_header)) {
    content.damage = bytes.starts_with(any_header) ? "it was written by a newer evictd" : "it holds no events";
    return content;
  }
  content.good_bytes = segment_header.size();
  while (content.good_bytes < bytes.size()) {
    const auto rest = bytes.substr(content.good_bytes);
    const auto damaged = [&](std::string_view how) {
      content.damage = fmt::format("its last {} bytes are {}", rest.size(), how);
      return std::move(content);
    };
    if (rest.size() < record_head) return damaged("torn");
    const std::size_t size = os::get_32(rest.data());
    if (size > largest_record) return damaged("no events");
    if (rest.size() - record_head < size) return damaged("torn");
    const auto payload = rest.substr(record_head, size);
    if (os::get_32(rest.data() + 4) != os::checksum(rest.substr(0, 4), payload)) return damaged("no events");
    auto event = std::make_shared<v1::Event>();
    if (event->ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
      if (event->sequence() <= after) return damaged("events that are not in their order");
      after = event->sequence();
      content.events.push_back(std::move(event));
    }
    content.good_bytes += record_head + size;
  }
  return content;
}

}  // namespace evictd::events
