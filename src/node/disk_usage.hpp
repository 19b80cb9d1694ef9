#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// What one or several walks together may take. Pods decide how many files they have; a walk without a bound would let
/// one of them hold up the measuring of all.
class WalkBudget {
 public:
  /// The time runs from now on. A stop that is requested uses the budget up.
  WalkBudget(std::int64_t entries, core::Duration time, std::stop_token stop = {})
      : entries_(entries), end_(core::Instant::clock::now() + time), stop_(std::move(stop)) {}

  /// Takes one entry; false from when there is none left.
  [[nodiscard]] bool take();
  /// How many were not taken.
  [[nodiscard]] std::int64_t entries_left() const { return entries_; }

 private:
  std::int64_t entries_;
  std::int64_t taken_ = 0;
  bool ended_ = false;
  core::Instant end_;
  std::stop_token stop_;
};

/// What a directory and everything below it holds.
struct TreeUsage {
  std::int64_t bytes = 0;   ///< of allocated blocks: a sparse file counts what it holds, not its length
  std::int64_t inodes = 0;  ///< with the directory itself
  bool complete = true;     ///< false: the walk has not ended, or something could not be read; there is more than this

  friend bool operator==(const TreeUsage&, const TreeUsage&) = default;
};

/// A walk of one tree as du(1) makes it: each file once however many names it has, no symbolic link followed, nothing
/// that is mounted below, which is neither opened nor asked. It goes on where its budget ended, and the tree may change
/// meanwhile; what vanishes on the way counts where it was seen.
///
/// What it keeps is bounded whatever the tree is like, to some 20 MiB: more than 20,000 directories deep it does not
/// look, and of more than 262,144 files with several names each name counts its share of the file.
///
/// For any thread, and not for two at a time. 4 µs for each file that is in the kernel's cache, 25 µs where it is read
/// from disk (180000 files on ext4, 2 cores shared with others, kernel 6.18).
class TreeWalk {
 public:
  enum class Extent : std::uint8_t {
    everything,
    files,  ///< what lies directly in the directory, neither other directories nor itself
  };

  /// `root`: an open directory.
  explicit TreeWalk(os::FileDescriptor root, Extent extent = Extent::everything);

  /// Goes on until the tree or the budget ends; whether the tree did.
  [[nodiscard]] bool go_on(WalkBudget& budget);
  /// As far as it was seen.
  [[nodiscard]] TreeUsage usage() const;

 private:
  /// A directory on the way from the root to the one that is read.
  struct Level {
    os::FileDescriptor descriptor;
    ino_t inode = 0;
    off_t position = 0;                  // where its listing goes on
    bool listed = false;                 // to its end
    std::vector<std::string> pending{};  // directories in it that are still to be read
  };

  [[nodiscard]] bool has_unread_entries() const { return offset_ < size_; }
  [[nodiscard]] bool look_through(WalkBudget& budget);
  [[nodiscard]] bool step(WalkBudget& budget);
  void list(Level& level);
  void enter(os::FileDescriptor descriptor);
  void leave();
  void look_at(Level& level, const char* name, unsigned char type);
  void add_name(std::uint64_t inode, std::uint32_t names, std::uint64_t blocks);

  Extent extent_;
  TreeUsage usage_;
  double shared_bytes_ = 0;  // of files with more names than are remembered
  double shared_inodes_ = 0;
  dev_t device_ = 0;
  std::uint64_t mount_ = 0;  // 0: the kernel does not tell
  std::vector<Level> levels_;
  std::unordered_set<std::uint64_t> seen_;  // inodes of files with more names than one
  std::unique_ptr<std::byte[]> listing_;    // a piece of the last level's
  std::size_t offset_ = 0;
  std::size_t size_ = 0;
};

/// A walk that ends with its budget. Blocks the calling thread.
///
/// Error: the directory itself cannot be opened or is a symbolic link.
[[nodiscard]] os::FileResult<TreeUsage> measure_tree(const std::filesystem::path& directory, WalkBudget& budget);

}  // namespace evictd::node
