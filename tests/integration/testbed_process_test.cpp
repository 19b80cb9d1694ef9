#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/leftovers.hpp"
#include "testbed/process.hpp"
#include "testbed/programs.hpp"
#include "testbed/traced_calls.hpp"
#include "testbed/wait.hpp"
#include "testbed/work_directory.hpp"

namespace integration::testbed_process_test {

using namespace std::chrono_literals;
using namespace testbed;

TEST_CASE("a program's output, errors and exit code are known, and a signal counts as 128 and its number") {
  Process failing({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(failing.wait(10s) == 3);
  CHECK(failing.output() == "out\n");
  CHECK(failing.errors() == "err\n");

  Process sleeping({"sleep", "60"});
  CHECK(sleeping.running());
  CHECK_FALSE(sleeping.wait(20ms).has_value());
  sleeping.signal(SIGTERM);
  CHECK(sleeping.wait(10s) == 128 + SIGTERM);
  CHECK_FALSE(sleeping.running());
}

TEST_CASE("a program gets its working directory, its environment before ours, and files to write to") {
  const WorkDirectory directory;
  Process process({"sh", "-c", "pwd; echo $HOME; echo $PATH >&2"}, {.environment = {"HOME=/nowhere"},
                                                                    .working_directory = directory.path(),
                                                                    .output = directory.path() / "both",
                                                                    .errors = directory.path() / "errors"});
  REQUIRE(process.wait(10s) == 0);
  CHECK(read_file(directory.path() / "both") == directory.path().native() + "\n/nowhere\n");
  CHECK(process.errors() == std::string(std::getenv("PATH")) + "\n");
}

TEST_CASE("a program ends with its object") {
  pid_t pid = 0;
  {
    const Process process({"sleep", "60"});
    pid = process.pid();
    CHECK(::kill(pid, 0) == 0);
  }
  CHECK(::kill(pid, 0) == -1);
  CHECK(errno == ESRCH);
}

TEST_CASE("failures say in one line what was tried and what came of it") {
  CHECK_THROWS_WITH_AS(Process({"no-such-program"}), "starting no-such-program: No such file or directory", Failure);
  CHECK_THROWS_WITH_AS(run({"sh", "-c", "echo too bad >&2; exit 4"}),
                       "sh -c echo too bad >&2; exit 4: exit code 4: too bad\n", Failure);
  const auto milliseconds = patient(10ms).count();
  CHECK_THROWS_WITH_AS(run({"sleep", "60"}, 10ms),
                       fmt::format("sleep 60: still running after {} ms", milliseconds).c_str(), Failure);
  CHECK_THROWS_WITH_AS(
      wait_until("pigs fly", 10ms, [] { return false; }),
      fmt::format("after {} s it is still not so: pigs fly", static_cast<double>(milliseconds) / 1000).c_str(),
      Failure);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_number("/no/such/file")), "/no/such/file: No such file or directory",
                       Failure);
}

TEST_CASE("a work directory takes the processes in it along, even those that are nobody's children") {
  std::filesystem::path path;
  std::string proc;
  {
    const WorkDirectory directory;
    path = directory.path();
    auto shell = directory.spawn({"sh", "-c", "pwd; sleep 60 >/dev/null 2>&1 & echo $!"});
    REQUIRE(shell.wait(10s) == 0);
    REQUIRE(shell.output().starts_with(path.native() + "\n"));
    proc = "/proc/" + std::to_string(std::stol(shell.output().substr(path.native().size() + 1)));
    REQUIRE(std::filesystem::exists(proc));
  }
  // Who adopted it may take a while to reap it.
  const auto status = try_read_file(proc + "/status");
  CHECK((!status || status->find("State:\tZ") != std::string::npos));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("load refuses what it does not understand") {
  const std::vector<std::vector<std::string>> lines = {{},
                                                       {"hold"},
                                                       {"hold", "64M"},
                                                       {"hold", "-1"},
                                                       {"hold", "64Mi", "64Mi"},
                                                       {"wobble"},
                                                       {"grow", "20Mi"},
                                                       {"grow", "20Mi", "5Mi"},
                                                       {"--ignore-term"},
                                                       {"write", "/tmp", "1Mi", "1"},
                                                       {"fork"},
                                                       {"follow"},
                                                       {"inodes", "/tmp"},
                                                       {"pause", "--ignore-term"}};
  for (const auto& line : lines) {
    std::vector<std::string> command = {load_program()};
    command.insert(command.end(), line.begin(), line.end());
    Process process(command);
    CHECK(process.wait(10s) == 2);
    CHECK(process.errors().starts_with("usage:\n  load "));
  }
  Process homeless({load_program(), "inodes", "/no/such/folder", "1"});
  CHECK(homeless.wait(10s) == 1);
  CHECK(homeless.errors() == "load: /no/such/folder: No such file or directory\n");
}

TEST_CASE("only the testbed's names of processes that are gone are leftovers") {
  Process owner({"true"});
  const auto name = prefix_of(owner.pid()) + "1";
  CHECK_FALSE(is_leftover(name));  // a zombie at most, but not yet reaped
  REQUIRE(owner.wait(10s) == 0);
  CHECK(is_leftover(name));
  CHECK_FALSE(is_leftover(unique_name()));
  CHECK_FALSE(is_leftover(prefix_of(1) + "1"));
  CHECK_FALSE(is_leftover(name.substr(0, name.rfind('-'))));
  CHECK_FALSE(is_leftover(prefix_of(-1) + "1"));
  CHECK_FALSE(is_leftover(name.substr(name.find('-') + 1)));
  CHECK(unique_name() != unique_name());
}

TEST_CASE("names of another PID namespace are no leftovers here, whatever process has their number") {
  const auto apart = [](const std::string& name) {
    return run({"unshare", "--pid", "--fork", "--mount-proc", std::filesystem::read_symlink("/proc/self/exe"),
                "is-leftover", name});
  };
  Process owner({"true"});
  REQUIRE(owner.wait(10s) == 0);
  const auto name = prefix_of(owner.pid()) + "1";
  CHECK(is_leftover(name));
  CHECK(apart(name) == "no\n");
}

TEST_CASE("who ends a process that is traced in the middle of a call learns of its end") {
  for (int i = 0; i < 100; ++i) {
    Process busy({"dd", "if=/dev/zero", "of=/dev/null", "bs=1"});
    {
      const TracedCalls traced{busy.pid()};
    }
    REQUIRE(busy.wait(30s) == 128 + SIGKILL);
  }
}

}  // namespace integration::testbed_process_test
