// How the test programs tell tools/test that something cannot run (tests/support/skip.hpp).
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "fixture/mount.hpp"
#include "fixture/places.hpp"
#include "support/skip.hpp"
#include "testbed/process.hpp"

namespace evictd::tools::skip_test {

TEST_CASE("without what a test needs its program says so, a line for each, and ends with 77") {
  SKIP_IF(fixture::Mount::impossible());
  testbed::Process program{{"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"", "sh",
                            std::filesystem::path(fixture::build_root) / "tests/unit/unit-evictd",
                            "--test-case=real pods: their cgroup comes*"}};
  CHECK(program.wait(std::chrono::minutes{1}) == support::exit_code_skipped);
  const auto said = program.output();
  CAPTURE(said);
  CHECK(said.starts_with("[doctest]"));
  CHECK(said.find("\nskipped: real pods: their cgroup comes, goes and comes back: ") != std::string::npos);
}

}  // namespace evictd::tools::skip_test
