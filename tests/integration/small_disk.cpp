#include "small_disk.hpp"

#include <sys/statvfs.h>

#include <string>
#include <string_view>
#include <vector>

#include "testbed/failure.hpp"
#include "testbed/process.hpp"

namespace integration {

SmallDisk::SmallDisk(const Options& options) : mount_{directory_.path() / "disk"} {
  std::filesystem::create_directory(mount_);
  const auto inodes = options.inodes ? std::to_string(*options.inodes) : "";
  if (!std::filesystem::exists("/dev/loop-control")) {
    const auto limits = "size=" + std::to_string(options.bytes) + (options.inodes ? ",nr_inodes=" + inodes : "");
    testbed::run({"mount", "-t", "tmpfs", "-o", limits, "tmpfs", mount_});
    return;
  }
  const auto image = directory_.path() / "disk.img";
  testbed::run({"truncate", "-s", std::to_string(options.bytes), image});
  std::vector<std::string> format{"mkfs.ext4", "-q", "-m", "0"};
  if (options.inodes) format.insert(format.end(), {"-N", inodes});
  format.push_back(image);
  testbed::run(format);
  testbed::run({"mount", "-o", "loop", image, mount_});
}

std::filesystem::path SmallDisk::directory(std::string_view name) const {
  const auto path = mount_ / name;
  std::filesystem::create_directories(path);
  return path;
}

std::int64_t SmallDisk::available() const {
  return static_cast<std::int64_t>(std::filesystem::space(mount_).available);
}

std::int64_t SmallDisk::free_inodes() const {
  struct statvfs status{};
  if (statvfs(mount_.c_str(), &status) != 0) testbed::fail_errno(mount_.native());
  return static_cast<std::int64_t>(status.f_favail);
}

void SmallDisk::fill(std::int64_t bytes) const {
  testbed::run({"fallocate", "-l", std::to_string(bytes), directory("ballast") / std::to_string(bytes)});
}

}  // namespace integration
