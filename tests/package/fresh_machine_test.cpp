#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bare_root.hpp"
#include "deb.hpp"
#include "fixture/documents.hpp"
#include "fixture/places.hpp"
#include "installation.hpp"
#include "support/skip.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using package::BareRoot;

namespace {

const std::string checkout = evictd::fixture::source_root;

/// Without what was built in it, and without its history.
void copy_checkout(const BareRoot& root) {
  const auto target = root.path().native() + checkout;
  fs::create_directories(target);
  testbed::run(
      {"bash", "-euo", "pipefail", "-c",
       "tar --create --directory \"$1\" --exclude-vcs --exclude './build*' . | tar --extract --directory \"$2\"",
       "copy", checkout, target});
}

/// A fresh machine compiles for twenty minutes. Here the compiler's results are this machine's, where it has them.
void share_compiler_cache(BareRoot& root) {
  if (!testbed::find_program("ccache")) return;
  const auto setting = [](const char* key) {
    return package::lines_of(testbed::run({"ccache", "--get-config", key})).at(0);
  };
  const auto directory = setting("cache_dir");
  fs::create_directories(directory);
  root.bind(directory);
  root.set("CCACHE_DIR=" + directory);
  root.set("CCACHE_MAXSIZE=" + setting("max_size"));
}

std::string in_checkout(const BareRoot& root, const std::string& command) {
  return root.done("cd '" + checkout + "' && " + command, 60min);
}

/// The README's two commands, as they stand.
void check_readme(BareRoot& root) {
  const auto commands = evictd::fixture::commands_of(evictd::fixture::code_blocks_of("README.md", "sh").at(0));
  REQUIRE(commands.size() == 2);
  REQUIRE(commands[0].text == "./tools/demo");
  REQUIRE(commands[1].text == "./tools/test");
  copy_checkout(root);
  share_compiler_cache(root);

  const auto shown = in_checkout(root, commands[0].text);
  CHECK_MESSAGE(shown.find("evicting default/bloat") != std::string::npos, shown);
  CHECK_MESSAGE(shown.find("CLEANUP_DONE") != std::string::npos, shown);

  // All tests would take half an hour here as well; that they find what they need is seen by those that need no
  // containerd. The integration tests find theirs as the demo does, by the same list of packages.
  const auto tested = package::lines_of(in_checkout(root, commands[1].text + " --quick"));
  CHECK(tested.back().ends_with(" passed, 0 failed"));
  // What the integration tests run is on the list as well.
  for (const auto* program :
       {"containerd", "runc", "busybox", "prometheus", "chromium-headless-shell", "tmux", "zsh", "fish"}) {
    CAPTURE(program);
    CHECK(root.run("command -v " + std::string(program)).code == 0);
  }
}

/// The package that this system makes, as a file of this machine.
fs::path package_made_in(const BareRoot& root) {
  return root.path() / fs::path(package::lines_of(in_checkout(root, "./tools/deploy/deb")).back()).relative_path();
}

/// What is seen of this machine's release with the package that is made here is seen of others with one made there.
void check_release(const package::Release& release) {
  try {
    BareRoot root{release};
    check_readme(root);
    if (!package::is_this_machines(release)) package::check_life_of(package_made_in(root), release);
  } catch (const package::NoWayToPackages& error) {
    support::skipped(error.what());
  }
}

}  // namespace

TEST_CASE("on a bare Debian 12 the README's two commands, as they stand, install what is missing, build and run") {
  check_release(package::debian_12);
}

/// All is compiled for it anew, by its own compiler. tools/test --all has this beside the integration tests.
TEST_CASE(
    "on a bare Debian 13 the README's two commands install what is missing, build and run; and its package lives" *
    doctest::test_suite("another release")) {
  check_release(package::debian_13);
}

TEST_CASE("a system without the libraries is told so in one sentence, before anything is installed") {
  try {
    BareRoot root{package::debian_12};
    copy_checkout(root);
    // As on a release whose libraries are too old.
    root.done("sed -i 's/ (>= 1.81) | libboost1.81-dev/ (>= 1.99)/' '" + checkout + "/tools/prepare.sh'");
    const auto told = root.run("cd '" + checkout + "' && ./tools/demo", 30min);
    CHECK(told.code == 1);
    CHECK(
        package::lines_of(told.said).back() ==
        "demo: this system is not supported: apt has no libboost-dev (>= 1.99); take Debian 12 or later, with its own "
        "packages");
    CHECK(root.run("command -v make").code != 0);
  } catch (const package::NoWayToPackages& error) {
    support::skipped(error.what());
  }
}
