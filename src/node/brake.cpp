#include "node/brake.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "core/saturating.hpp"
#include "os/log.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

constexpr int most_tries = 3;

std::int64_t in_whole_pages(std::int64_t bytes) {
  static const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return bytes / page * page;
}

/// Bytes; "max" is the largest number there is, as v1 says it, too.
std::optional<std::int64_t> parse_brake_limit(std::string_view text) {
  return text == "max" ? std::numeric_limits<std::int64_t>::max() : os::parse_number(text);
}

struct Braking {
  const CgroupHierarchy& hierarchy;
  const HoldNotes& notes;
  const os::Directory& cgroup;
  std::int64_t headroom;
  HoldNote note;

  Result<void> add(const std::string& file, std::string now) {
    auto before = read_held_file(cgroup, file);
    if (!before) return std::unexpected(before.error());
    note.values.push_back({.inode = cgroup.inode(), .file = file, .before = *std::move(before), .now = std::move(now)});
    return {};
  }

  /// What was written last is what the note says last.
  [[nodiscard]] os::FileResult<void> write_last() const {
    const auto& value = note.values.back();
    if (value.before == value.now) return {};
    return write_held_file(cgroup, value.file, value.now);
  }

  Result<Brake> limit(const std::string& file, const std::string& usage_file) {
    if (const auto added = add(file, ""); !added) return std::unexpected(added.error());
    auto& value = note.values.back();
    const auto before = parse_brake_limit(value.before);
    if (!before) return fail(fmt::format("{}/{}: \"{}\" is not a limit", cgroup.path(), file, value.before));
    for (int tried = 1;; ++tried) {
      const auto counter = cgroup.file(usage_file);
      if (!counter) return std::unexpected(counter.error());
      const auto usage = counter->read_number();
      if (!usage) return std::unexpected(usage.error());
      const auto wanted = in_whole_pages(core::saturating_add(*usage, headroom));
      const bool is_lower = *before <= wanted;
      value.now = is_lower ? value.before : std::to_string(wanted);
      // Before each try: of those that failed nothing stands.
      if (const auto noted = notes.write(note); !noted) return std::unexpected(noted.error());
      const auto written = write_last();
      if (written) return Brake{.limit = is_lower ? *before : wanted, .usage = *usage};
      if (written.error().code != EBUSY || tried == most_tries) return std::unexpected(written.error());
    }
  }

  Result<Brake> set() {
    if (hierarchy.version() == CgroupVersion::v2) return limit("memory.high", "memory.current");
    // Before the limit: beyond that the kernel would kill.
    if (const auto added = add("memory.oom_control", "1"); !added) return std::unexpected(added.error());
    if (const auto noted = notes.write(note); !noted) return std::unexpected(noted.error());
    if (const auto written = write_last(); !written) return std::unexpected(written.error());
    return limit("memory.limit_in_bytes", "memory.usage_in_bytes");
  }
};

}  // namespace

Result<Brake> set_brake(const CgroupHierarchy& hierarchy, const HoldNotes& notes, const std::string& uid,
                        const std::string& cgroup, std::int64_t headroom) {
  // One that an earlier hold left would count as what stood there before.
  if (const auto lifted = lift_hold(hierarchy, notes, uid); !lifted) return std::unexpected(lifted.error());
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return std::unexpected(directory.error());
  Braking braking{.hierarchy = hierarchy,
                  .notes = notes,
                  .cgroup = *directory,
                  .headroom = headroom,
                  .note = {.uid = uid, .cgroup = cgroup}};
  auto brake = braking.set();
  if (!brake)
    if (const auto lifted = lift_hold(hierarchy, notes, uid); !lifted)
      os::log_error("a brake may still stand: {}", lifted.error().message);
  return brake;
}

/// The note has both values until it is lifted: evictd may be killed between them.
Result<void> widen_brake(const CgroupHierarchy& hierarchy, const HoldNotes& notes, const std::string& uid,
                         std::int64_t limit) {
  auto read = notes.read(uid);
  if (!read) return std::unexpected(read.error());
  auto& note = *read;
  if (!note || note->values.empty()) return {};
  auto value = note->values.back();
  const auto before = parse_brake_limit(value.before);
  if (value.tree != HoldTree::memory || !before || value.now == value.before) return {};
  const auto cgroup = hierarchy.memory(note->cgroup);
  if (!cgroup) return std::unexpected(cgroup.error());
  const auto now = read_held_file(*cgroup, value.file);
  if (!now) return std::unexpected(now.error());
  if (cgroup->inode() != value.inode || *now != value.now) return {};
  value.now = *before <= limit ? value.before : std::to_string(in_whole_pages(limit));
  note->values.push_back(value);
  if (const auto noted = notes.write(*note); !noted) return std::unexpected(noted.error());
  if (const auto written = write_held_file(*cgroup, value.file, value.now); !written)
    return std::unexpected(written.error());
  return {};
}

}  // namespace evictd::node
