#include <optional>

#include "os/numbers.hpp"
#include "target.hpp"
#include "wake/memory_counters.hpp"

// memory.stat, memory.events and /proc/meminfo: what is found is what a reader of whole lines finds.

namespace evictd::fuzz {
namespace {

/// The first line that begins with the key and a blank, looked at as a person would.
std::optional<std::string_view> line_of(std::string_view table, std::string_view key) {
  while (!table.empty()) {
    const auto line = table.substr(0, table.find('\n'));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(' ')) return line.substr(key.size() + 1);
    table.remove_prefix(line.size() == table.size() ? line.size() : line.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_in(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return os::parse_number(line, false);
}

}  // namespace

void run(std::string_view input) {
  for (const std::string_view key : {"inactive_file", "total_inactive_file", "MemTotal:", "oom", "oom_kill"}) {
    const auto line = line_of(input, key);
    check(os::find_number(input, key) == (line ? number_in(*line) : std::nullopt), "the number of a line is found");
  }
  const auto counters = wake::parse_memory_counters(input);
  check(counters.high >= 0 && counters.max >= 0, "counters are not negative");
  check(counters.oom == os::find_number(input, "oom").value_or(0), "\"oom\" is not \"oom_kill\"");
}

}  // namespace evictd::fuzz
