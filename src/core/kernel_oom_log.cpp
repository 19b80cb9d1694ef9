#include "core/kernel_oom_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "core/number.hpp"

namespace evictd::core {
namespace {

constexpr std::string_view choice_begin = "oom-kill:constraint=";
constexpr std::string_view group_begin = "Tasks in ";
constexpr std::string_view group_end = " are going to be killed due to memory.oom.group set";
constexpr std::string_view of_limit = "Memory cgroup out of memory: Killed process ";
constexpr std::array<std::string_view, 2> of_node{"Out of memory: Killed process ",
                                                  "Out of memory (oom_kill_allocating_task): Killed process "};
/// TASK_COMM_LEN, without the zero.
constexpr std::size_t longest_comm = 15;
/// Of a line that comes in several records: paths of cgroups have at most 4096 bytes each.
constexpr std::size_t longest_line = 16384;
/// The kernel kills a whole cgroup in one go.
constexpr std::uint64_t longest_group = 1'000'000;  // microseconds

struct Record {
  std::uint64_t time = 0;  // microseconds
  bool continues = false;  // the record before it
  std::string text;
};

bool take(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

/// What the kernel writes as \x1b is that byte again.
std::string without_escapes(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    unsigned value = 0;
    const auto* digits = text.data() + 2;
    const bool escaped =
        text.size() >= 4 && text.starts_with("\\x") && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    plain += escaped ? static_cast<char>(value) : text.front();
    text.remove_prefix(escaped ? 4 : 1);
  }
  return plain;
}

/// Nothing where it is none, or not the kernel's own.
std::optional<Record> parse_record(std::string_view record) {
  const auto priority = take_count(record);
  if (!priority || *priority >= 8 || !take(record, ",")) return std::nullopt;  // 3 bits of severity, then the facility
  if (!take_count(record) || !take(record, ",")) return std::nullopt;
  const auto time = take_count(record);
  if (!time || !take(record, ",")) return std::nullopt;
  const bool continues = record.starts_with('c');
  const auto text = record.find(';');
  if (text == std::string_view::npos) return std::nullopt;
  record.remove_prefix(text + 1);
  return Record{.time = static_cast<std::uint64_t>(*time),
                .continues = continues,
                .text = without_escapes(record.substr(0, record.find('\n')))};
}

/// The only place where it stands. Nothing where it stands nowhere, or twice.
std::optional<std::size_t> find_only(std::string_view text, std::string_view wanted) {
  const auto place = text.find(wanted);
  if (place == std::string_view::npos || text.find(wanted, place + 1) != std::string_view::npos) return std::nullopt;
  return place;
}

/// Whether a path of a cgroup is that of the other one, or of one below it.
bool is_below(std::string_view path, std::string_view upper) {
  if (upper == "/") return path.starts_with('/');
  return path.starts_with(upper) && (path.size() == upper.size() || path[upper.size()] == '/');
}

/// ",KEYNUMBER" at the end, which is taken off.
std::optional<std::int64_t> take_last(std::string_view& text, std::string_view key) {
  const auto place = text.rfind(key);
  if (place == std::string_view::npos) return std::nullopt;
  auto digits = text.substr(place + key.size());
  const auto number = take_count(digits);
  if (!number || !digits.empty()) return std::nullopt;
  text = text.substr(0, place);
  return number;
}

/// The kernel's memory sizes are in KiB.
std::optional<std::int64_t> take_size(std::string_view& text, std::string_view key) {
  if (!take(text, key)) return std::nullopt;
  const auto number = take_count(text);
  if (!number || !take(text, "kB") || *number > std::numeric_limits<std::int64_t>::max() / 1024) return std::nullopt;
  return *number * 1024;
}

}  // namespace

std::optional<OomKill> OomLog::read(std::string_view record) {
  const auto parsed = parse_record(record);
  if (!parsed) return std::nullopt;
  std::string line;
  if (parsed->continues && !unfinished_.empty()) line = std::exchange(unfinished_, {});
  line += parsed->text;
  if (line.size() > longest_line) {
    unfinished_.clear();
    return std::nullopt;
  }
  const std::string_view text = line;
  if (text.starts_with(choice_begin)) {
    read_choice(text);
    if (!choice_) unfinished_ = line;
  } else if (text.starts_with(group_begin)) {
    group_.reset();
    if (!text.ends_with(group_end) || text.size() < group_begin.size() + group_end.size()) {
      unfinished_ = line;
      return std::nullopt;
    }
    group_ = Context{
        .pid = 0,
        .cgroup = std::string(text.substr(group_begin.size(), text.size() - group_begin.size() - group_end.size())),
        .shortage = std::exchange(last_shortage_, OomShortage::Unknown),
        .limited = std::exchange(last_limited_, {})};
    group_time_ = parsed->time;
  } else {
    return read_kill(text, parsed->time);
  }
  return std::nullopt;
}

/// "oom-kill:", which may go on in the next record: then it is read again with that.
void OomLog::read_choice(std::string_view line) {
  choice_.reset();
  group_.reset();
  last_shortage_ = OomShortage::Unknown;
  last_limited_.clear();
  if (!take_last(line, ",uid=")) return;
  const auto pid = take_last(line, ",pid=");
  if (!pid) return;
  const auto task = line.find(",task=", line.size() - std::min(line.size(), longest_comm + 6));
  const auto place = find_only(line, ",task_memcg=");
  if (task == std::string_view::npos || !place || *place > task) return;
  constexpr std::string_view task_memcg = ",task_memcg=";
  if (*place + task_memcg.size() > task) return;
  Context found{.pid = *pid,
                .cgroup = std::string(line.substr(*place + task_memcg.size(), task - *place - task_memcg.size())),
                .shortage = OomShortage::Unknown,
                .limited = {}};
  const auto before = line.substr(0, *place);
  constexpr std::string_view oom_memcg = ",oom_memcg=";
  if (const auto limited = find_only(before, oom_memcg)) {
    found.limited = before.substr(*limited + oom_memcg.size());
    found.shortage = OomShortage::Limit;
    if (!is_below(found.cgroup, found.limited)) return;
  } else if (before.ends_with(",global_oom")) {
    found.shortage = OomShortage::Node;
  } else {
    return;
  }
  last_shortage_ = found.shortage;
  last_limited_ = found.limited;
  choice_ = std::move(found);
}

std::optional<OomKill> OomLog::read_kill(std::string_view line, std::uint64_t time) {
  OomKill kill;
  if (take(line, of_limit))
    kill.shortage = OomShortage::Limit;
  else if (std::ranges::any_of(of_node, [&](std::string_view beginning) { return take(line, beginning); }))
    kill.shortage = OomShortage::Node;
  else
    return std::nullopt;
  const auto pid = take_count(line);
  if (!pid || !take(line, " (")) return std::nullopt;
  // Nothing but numbers comes behind the name, so the last one is the kernel's.
  const auto end = line.rfind(") total-vm:");
  if (end == std::string_view::npos) return std::nullopt;
  kill.pid = *pid;
  kill.comm = line.substr(0, std::min(end, longest_comm));
  if (const auto sizes = line.find(", anon-rss:", end); sizes != std::string_view::npos) {
    auto rest = line.substr(sizes);
    kill.anon = take_size(rest, ", anon-rss:");
    kill.file = take_size(rest, ", file-rss:");
    kill.shmem = take_size(rest, ", shmem-rss:");
  }
  const auto adopt = [&](const Context& context) {
    kill.cgroup = context.cgroup;
    if (kill.shortage == context.shortage) kill.limited = context.limited;
  };
  if (choice_ && choice_->pid == *pid)
    adopt(*choice_);
  else if (group_ && time >= group_time_ && time - group_time_ <= longest_group)
    adopt(*group_);
  return kill;
}

}  // namespace evictd::core
