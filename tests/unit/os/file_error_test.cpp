#include "os/file_error.hpp"

#include <doctest/doctest.h>

namespace evictd::os::file_error_test {

TEST_CASE("what vanished is told from what is wrong") {
  CHECK(system_error(ENOENT, "/a").is_gone());
  CHECK(system_error(ENODEV, "/a").is_gone());
  CHECK_FALSE(system_error(EIO, "/a").is_gone());
  CHECK_FALSE(content_error("/a", "x").is_gone());
}

TEST_CASE("a refusal tells what to do, another error does not") {
  CHECK(system_error(EPERM, "/a").message ==
        "/a: Operation not permitted; run as root, or give evictd's user the right to it");
  CHECK(system_error(EIO, "/a").message == "/a: Input/output error");
}

TEST_CASE("the error of a file becomes an ordinary one where nobody asks for its code") {
  const FileResult<int> file = std::unexpected(system_error(EIO, "/a"));
  const Result<int> plain = file;
  REQUIRE_FALSE(plain);
  CHECK(plain.error().message == "/a: Input/output error");
}

}  // namespace evictd::os::file_error_test
