#include <algorithm>
#include <string>
#include <vector>

#include "core/printable.hpp"
#include "kube/lines.hpp"
#include "kube/objects.hpp"
#include "target.hpp"

// A watch's answer as it comes from the network: pieces of any length, lines, events. And the list before it.

namespace evictd::fuzz {
namespace {

constexpr std::size_t longest_line = 4096;

/// Fed in pieces of this length; whatever comes after a line that is too long is not asked for.
std::vector<std::string> lines_of(std::string_view bytes, std::size_t piece) {
  kube::Lines lines{longest_line};
  std::vector<std::string> result;
  while (!bytes.empty()) {
    lines.add(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto line = lines.next();
      if (!is_good(line)) return result;
      if (!*line) break;
      result.push_back(**std::move(line));
    }
  }
  return result;
}

void check_event(std::string_view line) {
  const auto event = kube::parse_watch_event(line);
  if (!is_good(event)) return;
  check(core::printable(event->message) == event->message, "a server's message is one line");
  const bool has_object =
      event->kind == kube::WatchEvent::Kind::Upserted || event->kind == kube::WatchEvent::Kind::Deleted;
  check(has_object != event->object.empty(), "an object comes with those kinds that have one");
  if (!has_object) return;
  const auto again = value_of(kube::parse_watch_event(R"({"type":"ADDED","object":)" + event->object + "}"));
  // Not to the byte: Boost.JSON reads a fraction of many digits a little differently each time.
  check(again.resource_version == event->resource_version, "an object handed on is an object that can be read");
}

}  // namespace

void run(std::string_view input) {
  const auto lines = lines_of(input, input.size());
  check(lines_of(input, 7) == lines, "lines do not depend on the pieces they come in");
  for (const auto& line : lines) check_event(line);
  if (const auto page = kube::parse_list(input); is_good(page))
    check(!page->resource_version.empty(), "a list has a version to go on from");
}

}  // namespace evictd::fuzz
