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
#include "skip.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using package::BareRoot;

namespace {

/// Without what was built in it, and without its history.
void copy_checkout(const BareRoot& root) {
  const std::string source = evictd::fixture::source_root;
  const auto target = root.path().native() + source;
  fs::create_directories(target);
  testbed::run(
      {"bash", "-euo", "pipefail", "-c",
       "tar --create --directory \"$1\" --exclude-vcs --exclude './build*' . | tar --extract --directory \"$2\"",
       "copy", source, target});
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

}  // namespace

TEST_CASE("on a bare Debian 12 the README's two commands, as they stand, install what is missing, build and run") {
  try {
    const auto commands = evictd::fixture::commands_of(evictd::fixture::code_blocks_of("README.md", "sh").at(0));
    REQUIRE(commands.size() == 2);
    REQUIRE(commands[0].text == "./tools/demo");
    REQUIRE(commands[1].text == "./tools/test");
    BareRoot root;
    copy_checkout(root);
    share_compiler_cache(root);
    const auto in_checkout = [&](const std::string& command) {
      return root.done("cd '" + std::string(evictd::fixture::source_root) + "' && " + command, 60min);
    };

    const auto shown = in_checkout(commands[0].text);
    CHECK_MESSAGE(shown.find("evicting default/bloat") != std::string::npos, shown);
    CHECK_MESSAGE(shown.find("CLEANUP_DONE") != std::string::npos, shown);

    // All tests would take half an hour here as well; that they find what they need is seen by those that need no
    // containerd. The integration tests find theirs as the demo does, by the same list of packages.
    const auto tested = package::lines_of(in_checkout(commands[1].text + " --quick"));
    CHECK(tested.back().ends_with(" passed, 0 failed"));
    // What the integration tests run is on the list as well.
    for (const auto* program :
         {"containerd", "runc", "busybox", "prometheus", "chromium-headless-shell", "tmux", "zsh", "fish"}) {
      CAPTURE(program);
      CHECK(root.run("command -v " + std::string(program)).code == 0);
    }
  } catch (const package::NoWayToPackages& error) {
    package::skipped(error.what());
  }
}
