#include "bare_root.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>

#include "fixture/places.hpp"
#include "testbed/failure.hpp"
#include "testbed/files.hpp"

namespace package {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr int no_way = 77;  // of make-root

fs::path script(const char* name) { return fs::path(evictd::fixture::source_root) / "tools/debian" / name; }

/// What every test gets a copy of.
struct Original {
  testbed::WorkDirectory directory;
  std::string unreachable;

  explicit Original(const Release& release) {
    auto made = directory.spawn({script("make-root"), release.codename, directory.path() / "root"});
    const auto code = made.wait(30min);
    if (code == no_way)
      unreachable = made.errors();
    else if (code != 0)
      testbed::fail("make-root: " + made.errors());
  }
};

std::map<std::string, Original, std::less<>> originals;  // by codename

const Original& bare_debian(const Release& release) {
  const auto& original = originals.try_emplace(release.codename, release).first->second;
  if (!original.unreachable.empty()) throw NoWayToPackages("no way to Debian's packages: " + original.unreachable);
  return original;
}

}  // namespace

const Release& this_machines_release() {
  const auto system = testbed::read_file("/etc/os-release");
  return system.find(fmt::format("VERSION_CODENAME={}\n", debian_12.codename)) != std::string::npos ? debian_12
                                                                                                    : debian_13;
}

bool is_this_machines(const Release& release) { return &this_machines_release() == &release; }

BareRoot::BareRoot(const Release& release) : path_(directory_.path() / "root") {
  testbed::run({"cp", "--archive", bare_debian(release).directory.path() / "root", path_}, 15min);
}

BareRoot::Outcome BareRoot::run(const std::string& text, std::chrono::milliseconds deadline) const {
  std::vector<std::string> command{script("in-root"), path_};
  for (const auto& directory : bound_) command.insert(command.end(), {"--bind", directory});
  command.insert(command.end(), {"--", "/usr/bin/env"});
  command.insert(command.end(), environment_.begin(), environment_.end());
  command.insert(command.end(), {"bash", "-euo", "pipefail", "-c", text});
  const auto said = directory_.path() / "said";
  fs::remove(said);
  auto process = directory_.spawn(command, {.output = said, .errors = said});
  const auto code = process.wait(deadline);
  if (!code) testbed::fail(fmt::format("it still runs: {}\n{}", text, testbed::read_file(said)));
  return {.code = *code, .said = testbed::read_file(said)};
}

std::string BareRoot::done(const std::string& text, std::chrono::milliseconds deadline) const {
  auto outcome = run(text, deadline);
  if (outcome.code != 0) testbed::fail(fmt::format("{}: ended with {}\n{}", text, outcome.code, outcome.said));
  return std::move(outcome.said);
}

void forget_bare_roots() { originals.clear(); }

}  // namespace package
