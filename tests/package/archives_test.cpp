// What is made of a checkout for others: the sources as a tarball, and the image.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "deb.hpp"
#include "fixture/places.hpp"
#include "support/skip.hpp"
#include "testbed/process.hpp"
#include "testbed/work_directory.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

const fs::path source = evictd::fixture::source_root;

std::string script(const std::string& text, const fs::path& argument, std::chrono::milliseconds deadline) {
  return testbed::run({"bash", "-euo", "pipefail", "-c", text, "script", argument}, deadline);
}

}  // namespace

// Each builds the programs anew: tools/test --archives runs them.
TEST_SUITE_BEGIN("archives");

TEST_CASE("meson dist makes a tarball of the sources that builds") {
  if (!fs::exists(source / ".git"))
    return support::skipped("this checkout has no history, of which meson dist makes it");
  const testbed::WorkDirectory directory;
  testbed::run(
      {"meson", "dist", "-C", evictd::fixture::build_root, "--no-tests", "--allow-dirty", "--formats", "gztar"}, 5min);
  const auto name = "evictd-" + package::project_version();
  testbed::run({"tar", "--extract", "--file", fs::path(evictd::fixture::build_root) / "meson-dist" / (name + ".tar.gz"),
                "--directory", directory.path()});
  const auto tree = directory.path() / name;
  script(
      R"sh(cd "$1"; source tools/prepare.sh; build_targets=(src/evictd tools/evictctl/evictctl); build -Dtests=false)sh",
      tree, 45min);
  CHECK(testbed::run({tree / "build/src/evictd", "--version"}) == "evictd " + package::project_version() + "\n");
  CHECK(testbed::run({tree / "build/tools/evictctl/evictctl", "--version"}) ==
        "evictctl " + package::project_version() + "\n");
}

TEST_CASE("the image has Debian 13's libraries, and all that its programs need") {
  const testbed::WorkDirectory directory;
  const auto image = directory.path() / "image.tar";
  auto making = directory.spawn({source / "tools/deploy/image", "--output", image});
  const auto code = making.wait(60min);
  if (code == 77) return support::skipped("no way to Debian's packages: " + making.errors());
  REQUIRE_MESSAGE(code == 0, making.errors());
  script(R"sh(
    cd "$1"; mkdir layout tree; tar --extract --file image.tar --directory layout
    for blob in layout/blobs/sha256/*; do
      ! gzip --test "$blob" 2>/dev/null || tar --extract --gzip --file "$blob" --directory tree
    done)sh",
         directory.path(), 2min);
  const auto tree = directory.path() / "tree";
  CHECK(testbed::run({"chroot", tree, "/usr/bin/evictd", "--version"}) ==
        "evictd " + package::project_version() + "\n");
  CHECK(testbed::run({"chroot", tree, "/usr/bin/evictctl", "--version"}) ==
        "evictctl " + package::project_version() + "\n");
  const auto files = testbed::run({"find", tree, "-name", "libfmt.so.*"});
  CHECK_MESSAGE(files.find("/libfmt.so.10") != std::string::npos, files);
}

TEST_SUITE_END();
