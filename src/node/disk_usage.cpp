#include "node/disk_usage.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "node/file_descriptor.hpp"

namespace evictd::node {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

/// Of the directories between the root and the one that is read, this many stay open; those further up are opened again
/// on the way back. So a tree may be deeper than the process may have descriptors.
constexpr std::size_t kept_open = 32;

/// How much a system call gets of a directory at once.
constexpr std::size_t listing_size = 32768;

/// An entry that was listed, but is something else or nothing by now.
bool has_vanished(int code) { return code == ENOENT || code == ENOTDIR || code == ELOOP || code == ESTALE; }

class TreeWalk {
 public:
  explicit TreeWalk(WalkBudget& budget) : budget_(&budget) {}

  FileResult<TreeUsage> run(const std::filesystem::path& root) {
    FileDescriptor descriptor(::open(root.c_str(), directory_flags));
    struct stat file {};
    if (!descriptor || ::fstat(descriptor.get(), &file) != 0)
      return std::unexpected(system_error(errno, root.native()));
    device_ = file.st_dev;
    enter(std::move(descriptor));
    while (!levels_.empty() && !ended_) step();
    return usage_;
  }

 private:
  /// A directory on the way from the root to the one that is read.
  struct Level {
    FileDescriptor descriptor;
    ino_t inode = 0;
    std::vector<std::string> pending{};  // directories in it that are still to be read
  };

  void step() {
    auto& level = levels_.back();
    if (level.pending.empty()) return leave();
    const auto name = std::move(level.pending.back());
    level.pending.pop_back();
    FileDescriptor descriptor(::openat(level.descriptor.get(), name.c_str(), directory_flags));
    if (descriptor) return enter(std::move(descriptor));
    if (!has_vanished(errno)) usage_.complete = false;
  }

  /// Counts the directory, unless it is another file system's or was met before (bind mounts, a directory that is moved
  /// meanwhile), and what is in it.
  void enter(FileDescriptor descriptor) {
    struct stat file {};
    if (::fstat(descriptor.get(), &file) != 0) {
      usage_.complete = false;
      return;
    }
    if (file.st_dev != device_ || !seen_.insert(file.st_ino).second) return;
    add(file);
    levels_.push_back({.descriptor = std::move(descriptor), .inode = file.st_ino});
    if (levels_.size() > kept_open) levels_[levels_.size() - 1 - kept_open].descriptor.reset();
    list(levels_.back());
  }

  /// Back to the directory above, which ".." leads to unless the one below was moved away.
  void leave() {
    const auto below = std::move(levels_.back().descriptor);
    levels_.pop_back();
    if (levels_.empty() || levels_.back().descriptor) return;
    auto& above = levels_.back();
    above.descriptor.reset(::openat(below.get(), "..", directory_flags));
    struct stat file {};
    if (above.descriptor && ::fstat(above.descriptor.get(), &file) == 0 && file.st_dev == device_ &&
        file.st_ino == above.inode)
      return;
    stop();  // all directories further up are closed as well
  }

  void list(Level& level) {
    for (;;) {
      const auto size = ::getdents64(level.descriptor.get(), listing_->data(), listing_->size());
      if (size < 0 && !has_vanished(errno)) usage_.complete = false;
      if (size <= 0) return;
      for (std::size_t offset = 0; offset < static_cast<std::size_t>(size);) {
        const auto& entry = *reinterpret_cast<const dirent64*>(listing_->data() + offset);
        offset += entry.d_reclen;
        const std::string_view name = entry.d_name;
        if (name == "." || name == "..") continue;
        if (!budget_->take()) return stop();
        look_at(level, entry);
      }
    }
  }

  void look_at(Level& level, const dirent64& entry) {
    if (entry.d_type == DT_DIR) {
      level.pending.emplace_back(entry.d_name);
      return;
    }
    struct stat file {};
    if (::fstatat(level.descriptor.get(), entry.d_name, &file, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0) {
      if (!has_vanished(errno)) usage_.complete = false;
      return;
    }
    if (S_ISDIR(file.st_mode)) {  // not every file system tells the type in the listing
      level.pending.emplace_back(entry.d_name);
      return;
    }
    if (file.st_dev != device_) return;
    if (file.st_nlink > 1 && !seen_.insert(file.st_ino).second) return;
    add(file);
  }

  void add(const struct stat& file) {
    constexpr std::int64_t block = 512;  // whatever the file system's own block size (POSIX: stat)
    usage_.bytes += file.st_blocks * block;
    ++usage_.inodes;
  }

  void stop() {
    usage_.complete = false;
    ended_ = true;
  }

  struct alignas(dirent64) Listing : std::array<std::byte, listing_size> {};

  WalkBudget* budget_;
  TreeUsage usage_;
  dev_t device_ = 0;
  std::unordered_set<ino_t> seen_;  // directories, and files with more names than one
  std::vector<Level> levels_;
  std::unique_ptr<Listing> listing_ = std::make_unique<Listing>();
  bool ended_ = false;
};

}  // namespace

bool WalkBudget::take() {
  constexpr std::int64_t clock_interval = 64;  // entries, a fraction of a millisecond
  if (entries_ > 0 && entries_ % clock_interval == 0 && (stop_.stop_requested() || core::Instant::clock::now() >= end_))
    entries_ = 0;
  if (entries_ == 0) return false;
  --entries_;
  return true;
}

FileResult<TreeUsage> measure_tree(const std::filesystem::path& directory, WalkBudget& budget) {
  return TreeWalk(budget).run(directory);
}

}  // namespace evictd::node
