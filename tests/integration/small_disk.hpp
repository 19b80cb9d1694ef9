#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "testbed/work_directory.hpp"

namespace integration {

/// A file system of a few hundred MiB: ext4 on a loop device, or a tmpfs where there are none (as in the VM). Unmounted
/// and gone with this object, which must outlive the testbed that uses it.
class SmallDisk {
 public:
  struct Options {
    std::int64_t bytes = 0;
    std::optional<std::int64_t> inodes{};
  };

  explicit SmallDisk(const Options& options);

  [[nodiscard]] const std::filesystem::path& path() const { return mount_; }
  /// A directory on it, made if need be.
  [[nodiscard]] std::filesystem::path directory(std::string_view name) const;
  /// What an unprivileged process may still take.
  [[nodiscard]] std::int64_t available() const;
  [[nodiscard]] std::int64_t free_inodes() const;
  /// A file of this size outside all pods, as if the node itself had written it.
  void fill(std::int64_t bytes) const;

 private:
  testbed::WorkDirectory directory_;  // unmounts when it goes
  std::filesystem::path mount_;
};

}  // namespace integration
