// How tools/prepare.sh installs what is missing: with an apt-get that installs nothing.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "fixture/mount.hpp"
#include "fixture/places.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"
#include "testbed/process.hpp"

namespace evictd::tools::prepare_test {

namespace {

constexpr const char* policy = "/usr/sbin/policy-rc.d";

/// Says that a package is missing, shows whether its service may start while it is installed, and fails with 100.
constexpr const char* apt_get = R"(#!/bin/sh
case $* in
  *--simulate*) echo "Inst containerd" ;;
  *satisfy*) /usr/sbin/policy-rc.d; echo "services may start: $?" >&2; exit 100 ;;
esac
)";

struct Installation {
  int code = -1;
  std::string said;
};

/// In an empty /usr/sbin of its own, where `before` has run; what is there afterwards is listed.
Installation install(const std::string& before) {
  const fixture::Tree programs{fixture::file("apt-get", apt_get)};
  std::filesystem::permissions(programs.path("apt-get"), std::filesystem::perms::owner_exec,
                               std::filesystem::perm_options::add);
  testbed::Process process{
      {"unshare", "--mount", "bash", "-c",
       fmt::format("mount -t tmpfs none /usr/sbin && {} && source '{}/tools/prepare.sh' && PATH='{}':$PATH\n"
                   "(set -e; install_packages) || code=$?\n"
                   "echo \"left: $(cat {} 2>/dev/null)\" >&2; exit \"${{code:-0}}\"",
                   before, fixture::source_root, programs.path().native(), policy)}};
  const auto code = process.wait(std::chrono::minutes{1});
  return {.code = code.value_or(-1), .said = process.errors()};
}

}  // namespace

TEST_CASE("while packages are installed no service of theirs starts, and nothing of that is left, also of a failure") {
  SKIP_IF(fixture::Mount::impossible());
  const auto [code, said] = install("true");
  CAPTURE(said);
  CHECK(code == 100);
  CHECK(said.find("services may start: 101\n") != std::string::npos);
  CHECK(said.ends_with("left: \n"));
}

TEST_CASE("whether services start is the administrator's to say, where that is said") {
  SKIP_IF(fixture::Mount::impossible());
  const auto [code, said] = install(fmt::format("printf '#!/bin/sh\\nexit 0\\n' >{0} && chmod 755 {0}", policy));
  CAPTURE(said);
  CHECK(code == 100);
  CHECK(said.find("services may start: 0\n") != std::string::npos);
  CHECK(said.ends_with("left: #!/bin/sh\nexit 0\n"));
}

}  // namespace evictd::tools::prepare_test
