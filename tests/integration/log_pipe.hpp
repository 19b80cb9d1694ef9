#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "os/file_descriptor.hpp"

namespace integration {

/// A pipe that a program logs to, and its reader, who reads only when asked to.
class LogPipe {
 public:
  /// A fifo of this name, with room for 4 KiB.
  explicit LogPipe(std::filesystem::path path) : path_{std::move(path)} {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
    pipe_ = evictd::os::FileDescriptor{::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
    REQUIRE(pipe_.get() >= 0);
    REQUIRE(::fcntl(pipe_.get(), F_SETPIPE_SZ, 4096) == 4096);
  }

  /// Runs a program with the pipe as its stderr: for testbed::Agent::Options::wrapper.
  [[nodiscard]] std::vector<std::string> wrapper() const {
    return {"sh", "-c", "exec \"$@\" 2>" + path_.native(), "sh"};
  }
  /// By single bytes: what is more than there is room for is not written at all, and the program may write as well.
  void fill() const {
    while (::write(pipe_.get(), "\n", 1) == 1) {
    }
  }
  /// What is in it.
  std::string drain() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t size = 0; (size = ::read(pipe_.get(), buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(size));
    return text;
  }
  /// The reader goes: whoever writes now gets SIGPIPE.
  void leave() { pipe_ = evictd::os::FileDescriptor{}; }

 private:
  std::filesystem::path path_;
  evictd::os::FileDescriptor pipe_;
};

}  // namespace integration
