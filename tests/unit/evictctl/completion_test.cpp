#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "api/temporary_directory.hpp"
#include "evictctl/command_line.hpp"
#include "fixture/places.hpp"
#include "support/skip.hpp"

namespace evictd::ctl::completion_test {
namespace {

using Words = std::set<std::string>;

std::string output_of_evictctl(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "evictctl");
  std::ostringstream out;
  std::ostringstream err;
  REQUIRE(ctl::run(static_cast<int>(arguments.size()), arguments.data(), out, err) == 0);
  return out.str();
}

/// Of a shell's command; "evictctl" is the one that was built.
std::string output_of(const std::string& command) {
  const auto built = std::filesystem::path(evictd::fixture::evictctl_program).parent_path().native();
  FILE* const pipe = ::popen(("PATH='" + built + "':$PATH; " + command).c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  CHECK(::pclose(pipe) == 0);
  return text;
}

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

Words lines_of(const std::string& text) {
  Words words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) words.insert(line);
  return words;
}

/// A shell's script in a file of its own.
struct Script {
  test::TemporaryDirectory directory;
  std::string path;

  explicit Script(const char* shell) : path{directory / shell} {
    std::ofstream(path) << output_of_evictctl({"completion", shell});
  }
};

/// What bash offers for the last of these words; the words are as its line editor has split them.
Words bash_offers(const Script& script, const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += " '" + word + "'";
  return lines_of(output_of("bash -c 'set -u; source " + script.path +
                            "; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); " +
                            "_evictctl; printf \"%s\\n\" ${COMPREPLY[@]+\"${COMPREPLY[@]}\"}' bash evictctl" + line));
}

TEST_CASE("bash completes commands, options, and what options may be") {
  const Script script("bash");
  CHECK(bash_offers(script, {"st"}) == Words{"status"});
  const auto commands = bash_offers(script, {""});
  for (const char* command : {"status", "pods", "events", "explain", "top", "admit", "health", "completion"})
    CHECK(commands.contains(command));
  CHECK(bash_offers(script, {"-o", "y"}) == Words{"yaml"});
  CHECK(bash_offers(script, {"pods", "--output", ""}) == Words{"table", "wide", "json", "yaml"});
  CHECK(bash_offers(script, {"pods", "--output", "=", "w"}) == Words{"wide"});
  CHECK(bash_offers(script, {"pods", "--output", "="}).size() == 4);
  for (const auto* command : {"pods", "events"})
    CHECK(bash_offers(script, {command, "--signal", "node"}) == Words{"nodefs.available", "nodefs.inodesFree"});
  CHECK(bash_offers(script, {"events", "--signal", "p"}) == Words{"pid.available", "preemption"});
  CHECK(bash_offers(script, {"pods", "--signal", "p"}) == Words{"pid.available"});
  CHECK(bash_offers(script, {"-o", "json", "pods", "-s", "pid"}) == Words{"pid.available"});
  CHECK(bash_offers(script, {"admit", "--operation", ""}) == Words{"add", "resize"});
  CHECK(bash_offers(script, {"completion", ""}) == Words{"bash", "zsh", "fish"});
}

TEST_CASE("bash offers a command's own options beside the common ones, and nobody else's") {
  const Script script("bash");
  const auto events = bash_offers(script, {"events", "--"});
  CHECK(events.contains("--follow"));
  CHECK(events.contains("--address"));
  CHECK(events.contains("--help"));
  CHECK_FALSE(events.contains("--reserve"));
  CHECK_FALSE(events.contains("--watch"));
  CHECK(bash_offers(script, {"status", "--w"}) == Words{"--watch"});
  CHECK(bash_offers(script, {"-"}).contains("--version"));
}

TEST_CASE("bash knows which options take a value: it is no command, and nothing is offered where anything goes") {
  const Script script("bash");
  CHECK(bash_offers(script, {"-o", "pods", "events", "--f"}) == Words{"--follow"});
  CHECK(bash_offers(script, {"--address", "status", "ev"}) == Words{"events"});
  CHECK(bash_offers(script, {"events", "-f", "--sin"}) == Words{"--since"});  // a flag here, a file's name for admit
  CHECK(bash_offers(script, {"events", "--since", ""}) == Words{""});
}

TEST_CASE("bash completes file names where a file is wanted") {
  const Script script("bash");
  const auto begun = script.path.substr(0, script.path.size() - 2);
  CHECK(bash_offers(script, {"admit", "-f", begun}) == Words{script.path});
  CHECK(bash_offers(script, {"--address", begun}) == Words{script.path});
}

TEST_CASE("what may follow comes with what it means, and a file's name is asked for") {
  const auto commands = lines_of(output_of_evictctl({"complete", "--", ""}));
  CHECK(commands.contains("status\tHow the node and the agent stand"));
  CHECK_FALSE(commands.contains("complete\tWhat the last of these words may be completed to"));
  CHECK(lines_of(output_of_evictctl({"complete", "--", "status", "--wa"})) ==
        Words{"--watch\tGo on looking, every 2s or as often as it says here"});
  CHECK(lines_of(output_of_evictctl({"complete", "--", "pods", "--output=w"})) == Words{"--output=wide"});
  CHECK(lines_of(output_of_evictctl({"complete", "--", "thresholds", "set", "allocatable"})) ==
        Words{"allocatableMemory.available="});
  CHECK(output_of_evictctl({"complete", "--", "--ca", ""}) == ":files\n");
}

TEST_CASE("zsh reads its script") {
  SKIP_UNLESS(has_program("zsh"), "zsh is not installed");
  const Script script("zsh");
  CHECK(output_of("zsh -n " + script.path + " 2>&1").empty());
}

TEST_CASE("fish completes commands, options, and what options may be") {
  SKIP_UNLESS(has_program("fish"), "fish is not installed");
  const Script script("fish");
  const auto offers = [&](const std::string& line) {
    Words words;
    for (const auto& entry : lines_of(output_of("fish -c 'source " + script.path + "; complete -C \"" + line + "\"'")))
      words.insert(entry.substr(0, entry.find('\t')));
    return words;
  };
  CHECK(offers("evictctl st") == Words{"status"});
  CHECK(offers("evictctl pods --signal pid") == Words{"pid.available"});
  CHECK(offers("evictctl -o y") == Words{"yaml"});
  CHECK(offers("evictctl events --fo") == Words{"--follow"});
  CHECK(offers("evictctl status --fo").empty());
  CHECK(offers("evictctl --output=y") == Words{"--output=yaml"});
  CHECK(offers("evictctl thresholds ") == Words{"get", "set", "apply", "suggest"});
  const auto begun = script.path.substr(0, script.path.size() - 2);
  CHECK(offers("evictctl admit -f " + begun) == Words{script.path});
  CHECK(offers("evictctl admit --file=" + begun) == Words{"--file=" + script.path});
}

}  // namespace
}  // namespace evictd::ctl::completion_test
