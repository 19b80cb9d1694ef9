#include "os/file_descriptor.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cerrno>

namespace evictd::os::file_descriptor_test {
namespace {

bool is_open(int descriptor) { return ::fcntl(descriptor, F_GETFD) >= 0; }
FileDescriptor null_device() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

TEST_CASE("a descriptor is closed by its last owner and by no other") {
  int raw = -1;
  {
    auto first = null_device();
    REQUIRE(first);
    raw = first.get();
    FileDescriptor second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): what a move leaves behind is the point
    CHECK(second.get() == raw);
    CHECK(is_open(raw));
  }
  CHECK_FALSE(is_open(raw));
}

TEST_CASE("an assigned descriptor replaces the old one, which is closed") {
  auto first = null_device();
  auto second = null_device();
  const int old = first.get();
  const int kept = second.get();
  first = std::move(second);
  CHECK_FALSE(is_open(old));
  CHECK(first.get() == kept);
  CHECK(is_open(kept));
}

TEST_CASE("a released descriptor is left open") {
  auto owner = null_device();
  const int raw = owner.release();
  CHECK_FALSE(owner);
  CHECK(is_open(raw));
  FileDescriptor again(raw);
  again.reset();
  CHECK_FALSE(is_open(raw));
}

}  // namespace evictd::os::file_descriptor_test
