#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fixture/places.hpp"
#include "testbed/files.hpp"
#include "testbed/process.hpp"
#include "testbed/process_table.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testbed::Process;

namespace {

// On a busy machine a boot may take a minute, and one that hangs is tried again. The first one also installs an
// emulator and fetches a kernel.
constexpr auto long_enough = 20min;

/// A directory in which guests are started and leave, it is hoped, nothing.
class Host {
 public:
  Host() {
    fs::create_directory(here());
    fs::create_directory(temporary());
  }

  /// `tools/vm/run OPTION… -- bash -c SCRIPT`
  [[nodiscard]] Process start(const std::vector<std::string>& options, const std::string& script) const {
    std::vector<std::string> command = {fs::path(evictd::fixture::source_root) / "tools/vm/run"};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", "bash", "-c", script});
    return {
        command,
        {.environment = {testbed::mark_of(directory_.path()), "TMPDIR=" + temporary().native(), "QUOTED=it's \"$x\""},
         .working_directory = here()}};
  }

  [[nodiscard]] fs::path here() const { return directory_.path() / "here"; }

  void check_that_nothing_is_left() const {
    CHECK(testbed::marked_processes(directory_.path()).empty());
    CHECK(fs::is_empty(temporary()));
  }

 private:
  [[nodiscard]] fs::path temporary() const { return directory_.path() / "tmp"; }

  testbed::WorkDirectory directory_;
};

/// "name value" lines.
std::map<std::string, std::string> facts_in(const std::string& output) {
  std::map<std::string, std::string> facts;
  std::istringstream lines(output);
  for (std::string name, value; lines >> name && std::getline(lines >> std::ws, value);) facts[name] = value;
  return facts;
}

std::string many_lines() {
  std::string lines;
  for (int number = 1; number <= 20'000; ++number) lines += "line " + std::to_string(number) + '\n';
  return lines;
}

constexpr auto what_the_guest_is_like = R"sh(
  fact() { local name=$1; shift; echo "$name" "$("$@")"; }
  fact user id -u
  fact directory pwd
  fact cgroups stat -fc %T /sys/fs/cgroup
  fact controllers cat /sys/fs/cgroup/cgroup.controllers
  fact enabled cat /sys/fs/cgroup/cgroup.subtree_control
  fact pressure head -c 4 /proc/pressure/memory
  fact given printenv GIVEN
  fact inherited printenv QUOTED

  group=/sys/fs/cgroup/evictd-test
  mkdir $group
  echo $((64 << 20)) >$group/memory.max
  fact limit cat $group/memory.max
  fact files echo $(cd $group && ls io.max memory.events memory.pressure pids.max)

  echo gone >gone
  echo kept >out/kept
  cd "$TMPDIR"
  fact disk stat -fc %T .
  mkdir lower upper work merged
  mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay merged && fact overlay stat -fc %T merged

  # The output stays open in a process that nobody waits for.
  sleep 1000 &
  echo complaint >/dev/stderr
  for line in {1..20000}; do echo "line $line"; done
  exit 42
)sh";

}  // namespace

TEST_CASE("a command runs as root in its directory, under cgroup v2 with every controller, and its end comes back") {
  const Host host;
  auto guest = host.start({"--disk", "1", "--out", "out", "--env", "GIVEN=two words", "--env", "QUOTED"},
                          what_the_guest_is_like);
  const auto status = guest.wait(long_enough);
  REQUIRE_MESSAGE(status == 42, guest.errors());
  CHECK(guest.errors().find("complaint\n") != std::string::npos);

  auto facts = facts_in(guest.output());
  CHECK(facts["user"] == "0");
  CHECK(facts["directory"] == host.here());
  CHECK(facts["cgroups"] == "cgroup2fs");
  for (const std::string controller : {"cpu", "io", "memory", "pids"}) {
    CHECK((' ' + facts["controllers"] + ' ').find(' ' + controller + ' ') != std::string::npos);
  }
  CHECK(facts["enabled"] == facts["controllers"]);
  CHECK(facts["limit"] == std::to_string(64 << 20));
  CHECK(facts["files"] == "io.max memory.events memory.pressure pids.max");
  CHECK(facts["pressure"] == "some");
  CHECK(facts["given"] == "two words");
  CHECK(facts["inherited"] == "it's \"$x\"");
  CHECK(facts["disk"] == "ext2/ext3");
  CHECK(facts["overlay"] == "overlayfs");
  CHECK_MESSAGE(guest.output().ends_with(many_lines()), "some of much output is lost");

  CHECK_FALSE(fs::exists(host.here() / "gone"));
  CHECK(testbed::read_file(host.here() / "out/kept") == "kept\n");
  host.check_that_nothing_is_left();
}

TEST_CASE("a guest that takes too long is ended") {
  const Host host;
  auto guest = host.start({"--timeout", "2"}, "sleep 1000");
  CHECK(guest.wait(long_enough) == 124);
  CHECK(guest.errors().find("2 s") != std::string::npos);
  host.check_that_nothing_is_left();
}

TEST_CASE("two guests run side by side, and neither one's death nor its end by a signal leaves anything behind") {
  const Host host;
  auto patient = host.start({}, "echo up; sleep 1000");
  auto panicking = host.start({}, "echo c >/proc/sysrq-trigger");

  CHECK(panicking.wait(long_enough) == 125);
  CHECK(panicking.errors().find("Kernel panic") != std::string::npos);
  testbed::wait_until("the other guest is up, or over", long_enough,
                      [&] { return patient.output() == "up\n" || !patient.running(); });
  CHECK_MESSAGE(patient.running(), patient.errors());

  patient.signal(SIGTERM);
  CHECK(patient.wait(1min) == 128 + SIGTERM);
  host.check_that_nothing_is_left();
}

TEST_CASE("what cannot run says why, in one line") {
  const Host host;
  auto guest = host.start({"--memory", "much"}, "true");
  CHECK(guest.wait(long_enough) == 2);
  CHECK(guest.errors() == "tools/vm/run: --memory takes a whole number above zero; see tools/vm/run --help\n");
  host.check_that_nothing_is_left();
}
