#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace evictd::os {

/// A directory held open; everything below it is reached through its descriptor. So a reader works on whatever tree it
/// is given, and what it reads stays the same tree when another is mounted over the path.
class Directory {
 public:
  [[nodiscard]] static FileResult<Directory> open(const std::filesystem::path& path);

  /// `relative`: without a leading slash; "" is this directory again.
  [[nodiscard]] FileResult<Directory> subdirectory(std::string_view relative) const;
  /// The directory of this name right in it, and not what a symbolic link of that name leads to: ENOTDIR.
  [[nodiscard]] FileResult<Directory> own_subdirectory(std::string_view name) const;
  [[nodiscard]] FileResult<KeptFile> file(std::string_view relative) const;
  /// Whether a file or directory of this name is there (and may be looked at).
  [[nodiscard]] bool has(std::string_view relative) const;
  /// The same directory, named more shortly by errors: a walk that goes deep would hold long paths.
  [[nodiscard]] Directory shown_as(std::string path) && { return {std::move(descriptor_), std::move(path)}; }
  /// The names of the directories in it, sorted.
  [[nodiscard]] FileResult<std::vector<std::string>> subdirectories() const;
  /// The same, or nothing where it has more entries than so many, files counted.
  [[nodiscard]] FileResult<std::optional<std::vector<std::string>>> subdirectories_within(std::size_t entries) const;

  /// As errors name it.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  /// For one who has no more use for the rest.
  [[nodiscard]] FileDescriptor take_descriptor() { return std::move(descriptor_); }
  /// Tells a cgroup from a later one of the same name: cgroupfs does not give a number out again.
  [[nodiscard]] std::uint64_t inode() const { return inode_of(""); }
  /// The same of an entry; 0: it is not there.
  [[nodiscard]] std::uint64_t inode_of(std::string_view relative) const;

 private:
  Directory(FileDescriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  [[nodiscard]] std::string path_of(std::string_view relative) const;

  FileDescriptor descriptor_;
  std::string path_;
};

/// Adds the names of the directories in one that is open, in any order. `entries_left`: how many entries are looked at
/// at most, less those that were; false where they did not suffice. `path`: as errors name it.
[[nodiscard]] FileResult<bool> list_directories(FileDescriptor opened, std::string_view path, std::size_t& entries_left,
                                                std::vector<std::string>& names);

}  // namespace evictd::os
