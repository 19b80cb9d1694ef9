// What becomes of what tools/test has running when it is broken off: with programs that only wait.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "fixture/places.hpp"
#include "fixture/tree.hpp"
#include "testbed/process.hpp"
#include "testbed/wait.hpp"

namespace evictd::tools::beside_test {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;

constexpr const char* nothing = "#!/bin/sh\n";
/// Until it is told to end, which it notes; at the latest until its directory goes.
constexpr const char* waiting = R"(#!/bin/sh
exec 2>/dev/null  # the shell would say that its sleep was ended, to a reader who has gone
trap 'touch "$BUILD_DIR/ended"; exit' TERM
touch "$BUILD_DIR/started"
while [ -e "$BUILD_DIR" ]; do sleep 0.1; done
)";
constexpr const char* in_front = R"(#!/bin/sh
while [ -e "$BUILD_DIR" ]; do sleep 0.1; done
)";

}  // namespace

TEST_CASE("a run of the tests that is broken off ends what runs beside the others") {
  const fixture::Tree build{
      {dir("programs", {file("apt-get", nothing), file("ninja", nothing), file("clang-format-19", nothing)}),
       dir("tests", {dir("unit", {file("unit-core", waiting)}), dir("integration", {file("integration", in_front)})}),
       dir("tmp"), file("build.ninja", "")}};
  for (const auto& entry : fs::recursive_directory_iterator(build.path()))
    if (entry.is_regular_file()) fs::permissions(entry.path(), fs::perms::owner_exec, fs::perm_options::add);
  testbed::Process run{{fs::path(fixture::source_root) / "tools/test"},
                       {.environment = {"PATH=" + build.path("programs").native() + ":" + std::getenv("PATH"),
                                        "BUILD_DIR=" + build.path().native(), "TMPDIR=" + build.path("tmp").native()}}};
  testbed::wait_until("the unit tests run beside the others", 60s, [&] { return fs::exists(build.path("started")); });
  run.signal(SIGTERM);
  CHECK(run.wait(60s) == 128 + SIGTERM);
  testbed::wait_until("they have ended as well", 10s, [&] { return fs::exists(build.path("ended")); });
}

}  // namespace evictd::tools::beside_test
