#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "fixture/documents.hpp"
#include "testbed/agent.hpp"
#include "testbed/files.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::documents_test {

// The commands of the README and of the manual, as they stand, with the real programs and a real agent.

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using evictd::fixture::Command;
using testbed::Agent;
using testbed::Testbed;

namespace {

enum class How {
  Runs,       ///< to its end, with success
  GoesOn,     ///< says something, until it is told to end
  GoesAlone,  ///< the same where no other agent guards the node
  Declared,   ///< not run here; its options exist
  Elsewhere,  ///< not run here, and not of our two programs
};

struct Rule {
  std::string_view begins;
  How how;
  std::string_view where = {};  ///< where it is run, of what is not run here
};

/// One for each command; the first that fits counts.
constexpr std::array rules{
    Rule{"./tools/demo", How::Elsewhere, "tests/package, on a bare machine"},
    Rule{"./tools/test", How::Elsewhere, "tests/package, on a bare machine"},
    Rule{"./tools/deploy/deb", How::Elsewhere, "tests/package"},
    Rule{"sudo apt install ./build/evictd_", How::Elsewhere, "tests/package, on a bare machine"},
    Rule{"meson setup build && ninja -C build && sudo meson install -C build", How::Elsewhere, "tests/package"},
    Rule{"sudo evictd check", How::Runs},
    Rule{"sudo evictd run", How::GoesAlone},
    Rule{"sudo evictd cri-proxy", How::GoesOn},
    Rule{"evictctl top", How::Declared, "top_test.cpp, in a terminal"},
    Rule{"evictctl --address", How::Declared, "tls_test.cpp, with certificates"},
    Rule{"evictctl events --follow", How::GoesOn},
    Rule{"evictctl ", How::Runs},
    Rule{"source <(evictctl completion bash)", How::Runs},
    Rule{"journalctl ", How::Elsewhere, "there is no journal; tests/unit/host"},
    Rule{"sudo ./tools/deploy/image", How::Elsewhere, "tests/kubernetes"},
    Rule{"sudo ctr -n k8s.io images import", How::Elsewhere, "tests/kubernetes"},
    Rule{"kubectl apply -f tools/deploy/kubernetes", How::Elsewhere, "tests/kubernetes"},
    Rule{"crictl ", How::Elsewhere, "Debian has none; cri_proxy_test.cpp makes the same calls"},
};

const Rule* rule_for(const Command& command) {
  const auto found =
      std::ranges::find_if(rules, [&](const Rule& rule) { return command.text.starts_with(rule.begins); });
  return found == rules.end() ? nullptr : &*found;
}

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  for (const auto& block : evictd::fixture::all_code_blocks("sh"))
    for (const auto& command : evictd::fixture::commands_of(block)) commands.push_back(command);
  return commands;
}

/// A directory for PATH in which evictd and evictctl are those under test, pointed to the testbed by options behind all
/// others, and sudo runs what it is given: the test is root.
fs::path programs(const Testbed& testbed, const std::string& address) {
  const auto directory = testbed.directory() / "programs";
  fs::create_directory(directory);
  const auto add = [&](const char* name, const std::string& line) {
    testbed::replace_file(directory / name, "#!/bin/sh\nexec " + line + "\n");
    fs::permissions(directory / name, fs::perms::owner_all);
  };
  add("sudo", "\"$@\"");
  add("evictd",
      fmt::format("{} \"$@\" --config {} --kubelet-config {}", testbed::evictd_program().native(),
                  (testbed.directory() / "agent.yaml").native(), (testbed.directory() / "kubelet.yaml").native()));
  add("evictctl", fmt::format("{} --address {} \"$@\"", testbed::evictctl_program().native(), address));
  return directory;
}

testbed::Process start(const Testbed& testbed, const fs::path& programs, const Command& command) {
  return testbed.spawn({"bash", "-c", command.text},
                       {.environment = {fmt::format("PATH={}:{}", programs.native(), std::getenv("PATH"))}});
}

void check_that_it_goes_on(const Testbed& testbed, const fs::path& programs, const Command& command) {
  CAPTURE(command.document);
  CAPTURE(command.line);
  CAPTURE(command.text);
  auto process = start(testbed, programs, command);
  testbed::wait_until("it has said something, or ended", 60s,
                      [&] { return !process.output().empty() || !process.errors().empty() || !process.running(); });
  CHECK_MESSAGE(process.running(), process.errors());
  process.signal(SIGTERM);
  const auto code = process.wait(60s);
  REQUIRE(code.has_value());
  CHECK_MESSAGE((*code == 0 || *code == 128 + SIGTERM), process.errors());
}

/// The words of it that are options, without what they are set to, are in the program's help.
void check_declared(const Command& command) {
  CAPTURE(command.text);
  std::istringstream words(command.text);
  std::string help = testbed::run({testbed::evictctl_program(), "--help"});
  for (std::string word; words >> word;) {
    if (word == "top" || word == "status") help += testbed::run({testbed::evictctl_program(), word, "--help"});
    if (!word.starts_with("-")) continue;
    CHECK_MESSAGE(help.find(word.substr(0, word.find('=')) + " ") != std::string::npos, word);
  }
}

}  // namespace

TEST_CASE("each command of the documents is known to run here, or somewhere else") {
  for (const auto& command : all_commands()) {
    CAPTURE(command.document);
    CAPTURE(command.line);
    CAPTURE(command.text);
    CHECK(rule_for(command) != nullptr);
  }
}

TEST_CASE("the documents' commands do what they say, with a real agent") {
  Testbed testbed{{.node = {.memory_limit = 8LL << 30}}};
  std::vector<Command> lasting;
  std::vector<Command> alone;
  fs::path path;
  {
    Agent agent{testbed, {.thresholds = "evictionHard: {memory.available: 300Mi}"}};
    path = programs(testbed, agent.address());
    for (const auto& command : all_commands()) {
      const auto* rule = rule_for(command);
      const auto how = rule != nullptr ? rule->how : How::Elsewhere;
      if (how == How::GoesOn) lasting.push_back(command);
      if (how == How::GoesAlone) alone.push_back(command);
      if (how == How::Declared) check_declared(command);
      if (how != How::Runs) continue;
      CAPTURE(command.document);
      CAPTURE(command.line);
      CAPTURE(command.text);
      auto process = start(testbed, path, command);
      CHECK(process.wait(60s) == 0);
      CHECK_MESSAGE(process.errors().empty(), process.errors());
    }
    for (const auto& command : lasting) check_that_it_goes_on(testbed, path, command);
  }
  for (const auto& command : alone) check_that_it_goes_on(testbed, path, command);
}

}  // namespace integration::documents_test
