// What tests/vm/guest ends with, by what the programs that it runs end with.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "fixture/mount.hpp"
#include "fixture/places.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"
#include "testbed/process.hpp"

namespace evictd::tools::guest_test {

namespace {

namespace fs = std::filesystem;
using fixture::dir;
using fixture::file;

/// With programs that end so. What the guest sets below /sys is its own kernel's, which this machine's is not.
std::optional<int> status_of_guest(int unit, int integration) {
  const auto program = [](const char* name, int code) { return file(name, fmt::format("#!/bin/sh\nexit {}\n", code)); };
  const fixture::Tree build{{dir("tests", {dir("unit", {program("unit-evictd", unit)}),
                                           dir("integration", {program("integration", integration)})})}};
  for (const auto* name : {"tests/unit/unit-evictd", "tests/integration/integration"})
    fs::permissions(build.path(name), fs::perms::owner_exec, fs::perm_options::add);
  testbed::Process guest{{"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /sys && exec \"$@\"", "sh",
                          fs::path(fixture::source_root) / "tests/vm/guest", build.path()}};
  return guest.wait(std::chrono::minutes{1});
}

}  // namespace

TEST_CASE("that a program skipped something is no word against one that failed, whichever comes first") {
  SKIP_IF(fixture::Mount::impossible());
  CHECK(status_of_guest(0, 0) == 0);
  CHECK(status_of_guest(1, 77) == 1);
  CHECK(status_of_guest(77, 1) == 1);
  CHECK(status_of_guest(77, 0) == 77);
  CHECK(status_of_guest(0, 77) == 77);
}

}  // namespace evictd::tools::guest_test
