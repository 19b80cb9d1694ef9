#include "os/timed_write.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "fixture/tree.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::os::timed_write_test {

using namespace std::chrono_literals;

TEST_CASE("what can be written is written") {
  const fixture::Tree tree{fixture::file("f", "")};
  const FileDescriptor file{::open(tree.path("f").c_str(), O_RDWR | O_CLOEXEC)};
  REQUIRE(file);
  CHECK(write_within(file.get(), "text", 10s) == 0);
  std::array<char, 8> buffer{};
  CHECK(::pread(file.get(), buffer.data(), buffer.size(), 0) == 4);
}

TEST_CASE("a write that is refused says why") {
  const fixture::Tree tree{fixture::file("f", "")};
  const FileDescriptor file{::open(tree.path("f").c_str(), O_RDONLY | O_CLOEXEC)};
  REQUIRE(file);
  CHECK(write_within(file.get(), "text", 10s) == EBADF);
}

TEST_CASE("a write that hangs is broken off, again and again") {
  const fixture::Tree tree;
  const auto path = tree.path("pipe");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const FileDescriptor full{::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
  REQUIRE(full);
  const std::array<char, 4096> block{};
  while (::write(full.get(), block.data(), block.size()) > 0) {
  }
  const FileDescriptor pipe{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  REQUIRE(pipe);
  for (int time = 0; time < 3; ++time) CHECK(write_within(pipe.get(), "text", 2ms) == EINTR);
}

}  // namespace evictd::os::timed_write_test
