#include "node/hold_notes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ranges>
#include <system_error>
#include <utility>

#include "os/atomic_file.hpp"
#include "os/beneath.hpp"
#include "os/file_descriptor.hpp"
#include "os/log.hpp"
#include "os/numbers.hpp"

namespace evictd::node {
namespace {

constexpr std::string_view oom_control = "memory.oom_control";
constexpr std::string_view unfinished = ".new";  // os::write_atomically: nothing was touched yet

constexpr std::array<std::string_view, 5> held_files{"memory.high", "memory.limit_in_bytes", oom_control,
                                                     "cgroup.freeze", "freezer.state"};

std::string_view tree_name(HoldTree tree) { return tree == HoldTree::memory ? "memory" : "freezer"; }

/// The next word of the line, or nothing.
std::string_view take_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<HeldValue> parse_value(std::string_view line) {
  HeldValue value;
  const auto tree = take_word(line);
  if (tree != "memory" && tree != "freezer") return std::nullopt;
  value.tree = tree == "memory" ? HoldTree::memory : HoldTree::freezer;
  const auto inode = os::parse_number(take_word(line));
  if (!inode) return std::nullopt;
  value.inode = static_cast<std::uint64_t>(*inode);
  value.file = take_word(line);
  value.before = take_word(line);
  value.now = take_word(line);
  const bool known = std::ranges::find(held_files, value.file) != held_files.end();
  if (!known || value.before.empty() || value.now.empty() || !line.empty()) return std::nullopt;
  return value;
}

/// A v1 cgroup that is being frozen says so for a while.
bool is_ours(const HeldValue& value, std::string_view now) {
  return now == value.now || (value.file == "freezer.state" && value.now == "FROZEN" && now == "FREEZING");
}

os::FileResult<void> put_back(const CgroupHierarchy& hierarchy, const std::string& cgroup, const HeldValue& value) {
  const auto directory = hold_directory(hierarchy, value.tree, cgroup);
  if (!directory) return std::unexpected(directory.error());
  if (directory->inode() != value.inode) return {};
  const auto now = read_held_file(*directory, value.file);
  if (!now) return std::unexpected(now.error());
  if (*now == value.before) return {};
  if (is_ours(value, *now)) return write_held_file(*directory, value.file, value.before);
  os::log_warning("{}/{} is {}, set by someone else: left as it is", directory->path(), value.file, *now);
  return {};
}

}  // namespace

std::string HoldNote::text() const {
  auto text = cgroup + '\n';
  for (const auto& value : values)
    text += fmt::format("{} {} {} {} {}\n", tree_name(value.tree), value.inode, value.file, value.before, value.now);
  return text;
}

std::optional<HoldNote> HoldNote::parse(std::string_view uid, std::string_view text) {
  HoldNote note{.uid = std::string(uid), .cgroup = {}};
  for (const auto range : std::views::split(text, '\n')) {
    const std::string_view line(range.begin(), range.end());
    if (note.cgroup.empty()) {
      if (!line.starts_with('/')) return std::nullopt;
      note.cgroup = line;
      continue;
    }
    if (line.empty()) continue;
    auto value = parse_value(line);
    if (!value) return std::nullopt;
    note.values.push_back(*std::move(value));
  }
  if (note.cgroup.empty()) return std::nullopt;
  return note;
}

/// A pod's uid is whatever its creator says.
bool HoldNotes::is_name(std::string_view uid) const {
  constexpr std::size_t longest = 200;
  return os::is_one_name(uid) && uid.size() <= longest && !uid.ends_with(unfinished);
}

Result<void> HoldNotes::write(const HoldNote& note) const {
  if (!is_name(note.uid)) return fail("the pod's uid cannot be the name of a file");
  if (note.cgroup.contains('\n')) return fail("the name of the pod's cgroup has more than one line");
  return os::write_atomically(directory_ / note.uid, note.text(), {.durable = false});
}

os::FileResult<std::optional<HoldNote>> HoldNotes::read(std::string_view uid) const {
  constexpr auto none = [](const os::FileError& error) { return error.is_gone() || error.code == ENOTDIR; };
  if (!is_name(uid)) return std::nullopt;
  const auto directory = os::Directory::open(directory_);
  if (!directory && none(directory.error())) return std::nullopt;
  if (!directory) return std::unexpected(directory.error());
  const auto file = directory->file(uid);
  if (!file && none(file.error())) return std::nullopt;
  if (!file) return std::unexpected(file.error());
  std::array<char, 8192> buffer;
  const auto text = file->read(buffer);
  if (!text) return std::unexpected(text.error());
  return HoldNote::parse(uid, *text);
}

std::vector<std::string> HoldNotes::uids() const {
  std::vector<std::string> uids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry{directory_, error}, end; !error && entry != end;
       entry.increment(error))
    if (auto uid = entry->path().filename().native(); is_name(uid)) uids.push_back(std::move(uid));
  std::ranges::sort(uids);
  return uids;
}

void HoldNotes::remove(std::string_view uid) const {
  if (!is_name(uid)) return;
  std::error_code error;
  std::filesystem::remove(directory_ / uid, error);
  const bool none = error == std::errc::not_a_directory;  // where the notes should be is something else
  if (error && !none) os::log_warning("{}: {}", (directory_ / uid).native(), error.message());
  ::rmdir(directory_.c_str());  // while it has others it stays
}

void HoldNotes::tidy() const {
  std::vector<std::filesystem::path> left;
  std::error_code error;
  for (std::filesystem::directory_iterator entry{directory_, error}, end; !error && entry != end;
       entry.increment(error))
    if (entry->path().native().ends_with(unfinished)) left.push_back(entry->path());
  for (const auto& path : left) std::filesystem::remove(path, error);
  ::rmdir(directory_.c_str());
}

os::FileResult<os::Directory> hold_directory(const CgroupHierarchy& hierarchy, HoldTree tree, std::string_view cgroup) {
  if (tree == HoldTree::memory || hierarchy.version() == CgroupVersion::v2) return hierarchy.memory(cgroup);
  const auto root = os::Directory::open(std::filesystem::path(hierarchy.root().path()).parent_path() / "freezer");
  if (!root) return std::unexpected(root.error());
  return root->subdirectory(cgroup.substr(std::min(cgroup.find_first_not_of('/'), cgroup.size())));
}

os::FileResult<std::string> read_held_file(const os::Directory& cgroup, const std::string& file) {
  const auto opened = cgroup.file(file);
  if (!opened) return std::unexpected(opened.error());
  std::array<char, 256> buffer;
  const auto text = opened->read(buffer);
  if (!text) return std::unexpected(text.error());
  auto line = text->substr(0, text->find('\n'));
  constexpr std::string_view label = "oom_kill_disable ";
  if (file == oom_control && line.starts_with(label)) line.remove_prefix(label.size());
  if (line.empty() || line.contains(' '))
    return std::unexpected(os::content_error(opened->path(), "is no single value"));
  return std::string(line);
}

os::FileResult<void> write_held_file(const os::Directory& cgroup, const std::string& file, std::string_view value) {
  // Linux 6.16: O_NONBLOCK leaves it to the allocators to reclaim where memory.high is set.
  const os::FileDescriptor opened{
      ::openat(cgroup.descriptor(), file.c_str(), O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC)};
  const auto text = std::string(value) + '\n';
  if (!opened || ::write(opened.get(), text.data(), text.size()) < 0)
    return std::unexpected(os::system_error(errno, fmt::format("{}/{}", cgroup.path(), file)));
  return {};
}

os::FileResult<void> lift_hold(const CgroupHierarchy& hierarchy, const HoldNotes& notes, std::string_view uid) {
  const auto read = notes.read(uid);
  if (!read) return std::unexpected(read.error());
  const auto& note = *read;
  if (!note) {
    notes.remove(uid);  // there may be one that nobody could go by
    return {};
  }
  os::FileResult<void> result;
  for (const auto& value : note->values | std::views::reverse) {
    auto done = put_back(hierarchy, note->cgroup, value);
    if (!done && !done.error().is_gone() && result) result = std::move(done);
  }
  if (result) notes.remove(uid);
  return result;
}

std::size_t lift_all_holds(const CgroupHierarchy& hierarchy, const HoldNotes& notes) {
  std::size_t count = 0;
  for (const auto& uid : notes.uids()) {
    const auto lifted = lift_hold(hierarchy, notes, uid);
    if (lifted)
      ++count;
    else
      os::log_error("a pod may still be held: {}; \"evictd disarm\" lets it go once no evictd runs",
                    lifted.error().message);
  }
  notes.tidy();
  return count;
}

}  // namespace evictd::node
