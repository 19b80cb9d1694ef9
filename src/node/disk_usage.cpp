#include "node/disk_usage.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cmath>
#include <string_view>
#include <utility>

#include "os/beneath.hpp"

namespace evictd::node {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

/// Of the directories between the root and the one that is read, so many at either end stay open; those between are
/// opened again on the way back. So a tree may be deeper than the process may have descriptors, and where a directory
/// was moved away meanwhile, there is one further up to go on from.
constexpr std::size_t kept_open = 16;

/// Deeper than anything that is meant to be used; 40 bytes each, and what is still to be read in them.
constexpr std::size_t deepest = 20'000;

/// How much a system call gets of a directory at once: further down little, as every directory on the way keeps the
/// names that are still to be read.
constexpr std::size_t listing_size = 32768;
constexpr std::size_t deep_listing_size = 512;
constexpr std::size_t deep = 64;

/// 10 MiB of inode numbers.
constexpr std::size_t most_remembered = 262'144;

constexpr std::uint64_t block = 512;  // whatever the file system's own block size (POSIX: stat)

/// An entry that was listed, but is something else or nothing by now.
bool has_vanished(int code) { return code == ENOENT || code == ENOTDIR || code == ELOOP || code == ESTALE; }

/// What is known is enough: a server that a mounted file comes from is not asked.
int look(int directory, const char* name, int flags, struct statx& file) {
  constexpr unsigned wanted = STATX_TYPE | STATX_NLINK | STATX_INO | STATX_BLOCKS | STATX_MNT_ID;
  return ::statx(directory, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC, wanted, &file);
}

dev_t device_of(const struct statx& file) { return makedev(file.stx_dev_major, file.stx_dev_minor); }

/// Since Linux 5.8; 0 before.
std::uint64_t mount_of(const struct statx& file) { return (file.stx_mask & STATX_MNT_ID) != 0 ? file.stx_mnt_id : 0; }

}  // namespace

bool WalkBudget::take() {
  constexpr std::int64_t clock_interval = 64;  // entries, a fraction of a millisecond
  if (ended_) return false;
  const bool is_over = entries_ == 0 || (taken_ % clock_interval == clock_interval - 1 &&
                                         (stop_.stop_requested() || core::Instant::clock::now() >= end_));
  ended_ = is_over;
  if (is_over) return false;
  ++taken_;
  --entries_;
  return true;
}

TreeWalk::TreeWalk(os::FileDescriptor root, Extent extent)
    : extent_(extent), listing_(std::make_unique<std::byte[]>(listing_size)) {
  struct statx file{};
  if (look(root.get(), "", AT_EMPTY_PATH, file) != 0) {
    usage_.complete = false;
    return;
  }
  device_ = device_of(file);
  mount_ = mount_of(file);
  enter(std::move(root));
}

TreeUsage TreeWalk::usage() const {
  auto usage = usage_;
  usage.bytes += std::llround(shared_bytes_);
  usage.inodes += std::llround(shared_inodes_);
  usage.complete = usage.complete && levels_.empty();
  return usage;
}

bool TreeWalk::go_on(WalkBudget& budget) {
  while (!levels_.empty())
    if (!(has_unread_entries() ? look_through(budget) : step(budget))) return false;
  return true;
}

/// False where the budget ended.
bool TreeWalk::step(WalkBudget& budget) {
  auto& level = levels_.back();
  if (level.pending.empty()) {
    level.listed ? leave() : list(level);
    return true;
  }
  if (!budget.take()) return false;
  const auto name = std::move(level.pending.back());
  level.pending.pop_back();
  auto descriptor = os::open_beneath(level.descriptor.get(), name);
  // Another file system, which may not answer, is not even opened.
  if (descriptor)
    enter(std::move(descriptor));
  else if (errno != EXDEV && !has_vanished(errno))
    usage_.complete = false;
  return true;
}

/// Counts the directory, unless it is another file system's, and has its entries read next.
void TreeWalk::enter(os::FileDescriptor descriptor) {
  struct statx file{};
  if (look(descriptor.get(), "", AT_EMPTY_PATH, file) != 0 || levels_.size() >= deepest) {
    usage_.complete = false;
    return;
  }
  if (device_of(file) != device_ || mount_of(file) != mount_) return;
  if (extent_ == Extent::everything) {
    usage_.bytes += static_cast<std::int64_t>(file.stx_blocks * block);
    ++usage_.inodes;
  }
  levels_.push_back({.descriptor = std::move(descriptor), .inode = file.stx_ino});
  if (levels_.size() > 2 * kept_open) levels_[levels_.size() - 1 - kept_open].descriptor.reset();
}

/// Back to the directory above, which ".." leads to unless the one below was moved away.
void TreeWalk::leave() {
  const auto below = std::move(levels_.back().descriptor);
  levels_.pop_back();
  if (levels_.empty() || levels_.back().descriptor) return;
  auto& above = levels_.back();
  above.descriptor.reset(::openat(below.get(), "..", directory_flags));
  struct statx file{};
  if (above.descriptor && look(above.descriptor.get(), "", AT_EMPTY_PATH, file) == 0 && device_of(file) == device_ &&
      file.stx_ino == above.inode) {
    if (!above.listed && ::lseek(above.descriptor.get(), above.position, SEEK_SET) < 0) above.listed = true;
    return;
  }
  usage_.complete = false;
  above.descriptor.reset();
  while (!levels_.empty() && !levels_.back().descriptor) levels_.pop_back();
}

void TreeWalk::list(Level& level) {
  const auto wanted = levels_.size() > deep ? deep_listing_size : listing_size;
  const auto size = ::getdents64(level.descriptor.get(), listing_.get(), wanted);
  if (size < 0 && !has_vanished(errno)) usage_.complete = false;
  level.listed = size <= 0;
  offset_ = 0;
  size_ = size > 0 ? static_cast<std::size_t>(size) : 0;
}

/// False where the budget ended; the entry that it did not suffice for is the next.
bool TreeWalk::look_through(WalkBudget& budget) {
  auto& level = levels_.back();
  while (has_unread_entries()) {
    const auto& entry = *reinterpret_cast<const dirent64*>(listing_.get() + offset_);
    const std::string_view name = entry.d_name;
    const bool is_passed_over = extent_ == Extent::files && entry.d_type == DT_DIR;
    if (name != "." && name != ".." && !is_passed_over) {
      // Of a directory it is opening it that takes time: see step().
      if (entry.d_type != DT_DIR && !budget.take()) return false;
      look_at(level, entry.d_name, entry.d_type);
    }
    level.position = entry.d_off;
    offset_ += entry.d_reclen;
  }
  return true;
}

void TreeWalk::look_at(Level& level, const char* name, unsigned char type) {
  const auto remember = [&] {
    if (extent_ == Extent::everything) level.pending.emplace_back(name);
  };
  if (type == DT_DIR) return remember();
  struct statx file{};
  if (look(level.descriptor.get(), name, 0, file) != 0) {
    if (!has_vanished(errno)) usage_.complete = false;
    return;
  }
  if (S_ISDIR(file.stx_mode)) return remember();  // not every file system tells the type in the listing
  if (device_of(file) == device_ && mount_of(file) == mount_) add_name(file.stx_ino, file.stx_nlink, file.stx_blocks);
}

/// One of a file's names.
void TreeWalk::add_name(std::uint64_t inode, std::uint32_t names, std::uint64_t blocks) {
  const auto bytes = blocks * block;
  if (names > 1 && seen_.size() >= most_remembered && !seen_.contains(inode)) {
    shared_bytes_ += static_cast<double>(bytes) / names;
    shared_inodes_ += 1.0 / names;
    return;
  }
  if (names > 1 && !seen_.insert(inode).second) return;
  usage_.bytes += static_cast<std::int64_t>(bytes);
  ++usage_.inodes;
}

os::FileResult<TreeUsage> measure_tree(const std::filesystem::path& directory, WalkBudget& budget) {
  os::FileDescriptor root(::open(directory.c_str(), directory_flags));
  if (!root) return std::unexpected(os::system_error(errno, directory.native()));
  TreeWalk walk{std::move(root)};
  (void)walk.go_on(budget);
  return walk.usage();
}

}  // namespace evictd::node
