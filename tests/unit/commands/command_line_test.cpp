#include "commands/command_line.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "fixture/program.hpp"

namespace evictd::commands::command_line_test {
namespace {

using fixture::run_evictd;

/// A command that notes what it was given.
Command noting(std::string name, std::vector<std::string>& notes, bool by_default) {
  return {.name = name,
          .description = "notes that it ran",
          .declare = [&notes, name](CommandLine& line) -> std::function<int()> {
            auto option = std::make_shared<std::string>();
            line.option({.names = "--option", .meaning = "is noted"}, *option);
            return [&notes, name, option] {
              notes.push_back(name + ":" + *option);
              return 7;
            };
          },
          .by_default = by_default};
}

int run(std::vector<const char*> arguments, std::vector<std::string>& notes) {
  const std::vector commands{noting("other", notes, false), noting("usual", notes, true)};
  arguments.insert(arguments.begin(), "evictd");
  return run_command_line(static_cast<int>(arguments.size()), arguments.data(), commands);
}

}  // namespace

TEST_CASE("the command that is named runs, with its options, and gives the exit code") {
  std::vector<std::string> notes;
  CHECK(run({"other", "--option", "x"}, notes) == 7);
  CHECK(notes == std::vector<std::string>{"other:x"});
}

TEST_CASE("without a name it is the default command that runs") {
  std::vector<std::string> notes;
  CHECK(run({}, notes) == 7);
  CHECK(run({"--option", "x"}, notes) == 7);
  CHECK(run({"usual"}, notes) == 7);
  CHECK(notes == std::vector<std::string>{"usual:", "usual:x", "usual:"});
}

TEST_CASE("the version and the help are printed, and name every command") {
  const auto version = run_evictd({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out == "evictd " EVICTD_VERSION "\n");
  const auto help = run_evictd({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  for (const auto* command : {"simulate", "inspect", "cri-proxy"}) {
    CHECK(help.out.find(command) != std::string::npos);
    const auto its_help = run_evictd({command, "--help"});
    CHECK(its_help.exit_code == 0);
    CHECK(its_help.out.find(std::string("Usage: evictd ") + command) != std::string::npos);
  }
}

TEST_CASE("a wrong command line is one line on stderr that says where to read on, and exit code 2") {
  const auto check = [](const std::vector<std::string>& arguments, const std::string& line) {
    const auto outcome = run_evictd(arguments);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err == line + "\n");
  };
  check({"bogus"}, "evictd: there is no command \"bogus\" (see \"evictd --help\")");
  check({"simulate"}, "evictd: SCENARIO is required (see \"evictd simulate --help\")");
  check({"simulate", "--bogus", "x"},
        "evictd: The following argument was not expected: --bogus (see \"evictd simulate --help\")");
  check({"simulate", "a", "b"}, "evictd: The following argument was not expected: b (see \"evictd simulate --help\")");
  check({"a\x1b[2J\xff"}, R"(evictd: there is no command "a\x1b[2J\xff" (see "evictd --help"))");
  check({"inspect", "-f"}, "evictd: --file: 1 required POD.yaml missing (see \"evictd inspect --help\")");
}

}  // namespace evictd::commands::command_line_test
