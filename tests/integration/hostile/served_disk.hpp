#pragma once
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string_view>

#include "testbed/files.hpp"
#include "testbed/mounts.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"

namespace integration {

/// A file system of 10 GiB whose server is a process: it hangs while that process is stopped. With this object the
/// server is killed, which ends every call that waits for it, and the mount is gone.
class ServedDisk {
 public:
  ServedDisk() {
    testbed::wait_until("the disk is mounted", std::chrono::seconds{20},
                        [&] { return !testbed::mounts_below(path()).empty(); });
  }
  ServedDisk(const ServedDisk&) = delete;
  ServedDisk& operator=(const ServedDisk&) = delete;
  ~ServedDisk() { server_.kill(); }

  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "disk"; }
  /// Makes a directory on it, beside the server.
  [[nodiscard]] std::filesystem::path directory(std::string_view name) const {
    std::filesystem::create_directories(backing() / name);
    return path() / name;
  }
  /// Makes a file on it, beside the server, which writes none anew.
  std::filesystem::path file(const std::filesystem::path& name, std::string_view text) const {
    std::filesystem::create_directories((backing() / name).parent_path());
    testbed::replace_file(backing() / name, text);
    return path() / name;
  }
  [[nodiscard]] pid_t server() const { return server_.pid(); }

  /// Whether there can be one here.
  [[nodiscard]] static bool possible() { return std::filesystem::exists("/dev/fuse"); }

 private:
  [[nodiscard]] std::filesystem::path backing() const { return directory_.path() / "backing"; }
  [[nodiscard]] testbed::Process start() const {
    std::filesystem::create_directory(backing());
    std::filesystem::create_directory(path());
    return directory_.spawn({testbed::crashing_evictd().parent_path() / "hostile/disk-server", backing(), "-f", "-o",
                             "allow_other,attr_timeout=0,entry_timeout=0,negative_timeout=0", path()});
  }

  testbed::WorkDirectory directory_;  // unmounts when it goes
  testbed::Process server_ = start();
};

}  // namespace integration
