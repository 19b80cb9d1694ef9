#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/skip.hpp"
#include "testbed/agent.hpp"
#include "testbed/programs.hpp"
#include "testbed/wait.hpp"

namespace integration::top_test {

// evictctl top in a real terminal: tmux holds it, and tells what is on it.

using namespace std::chrono_literals;
using evictd::core::QosClass;
using evictd::v1::Event;
using testbed::Agent;
using testbed::Testbed;

namespace {

constexpr std::int64_t mebi = 1 << 20;
const auto gibi_node = Testbed::Options{.node = {.memory_limit = 1024 * mebi}};
const std::string thresholds =
    "evictionHard: {memory.available: 300Mi}\nevictionSoft: {memory.available: 500Mi}\n"
    "evictionSoftGracePeriod: {memory.available: 10h}\n";

/// A shell in a terminal of a given size, on a tmux server of its own.
class Terminal {
 public:
  Terminal(Testbed& testbed, int columns, int rows, const std::string& locale)
      : testbed_{testbed}, socket_{testbed.directory() / "tmux.sock"} {
    auto tmux = testbed.spawn({"env", "LC_ALL=" + locale, "tmux", "-u", "-S", socket_, "-f", "/dev/null", "new-session",
                               "-d", "-x", std::to_string(columns), "-y", std::to_string(rows),
                               "exec env 'PS1=ready> ' bash --noprofile --norc"});
    REQUIRE(tmux.wait(60s) == 0);
    wait_for("ready>");
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    auto end = testbed_.spawn({"tmux", "-S", socket_, "kill-server"});
    end.wait(60s);
  }

  void type(const std::string& text) const { (void)tmux({"send-keys", "-l", text}); }
  void press(const std::string& key) const { (void)tmux({"send-keys", key}); }
  void enter(const std::string& command) const {
    type(command);
    press("Enter");
  }
  void resize(int columns, int rows) const {
    (void)tmux({"resize-window", "-x", std::to_string(columns), "-y", std::to_string(rows)});
  }
  [[nodiscard]] std::string screen() const { return tmux({"capture-pane", "-p"}); }
  [[nodiscard]] std::string coloured() const { return tmux({"capture-pane", "-p", "-e"}); }
  /// The line that has the words; empty if there is none.
  [[nodiscard]] std::string line(const std::string& words) const {
    std::istringstream lines(screen());
    for (std::string text; std::getline(lines, text);)
      if (text.find(words) != std::string::npos) return text;
    return "";
  }
  void wait_for(const std::string& words) const {
    std::string last;
    const bool came = testbed::comes_true(60s, [&] {
      last = screen();
      return last.find(words) != std::string::npos;
    });
    REQUIRE_MESSAGE(came, words, " is not on the screen:\n", last);
  }
  void wait_until_gone(const std::string& words) const {
    testbed::wait_until(words + " is not on the screen any more", 60s,
                        [&] { return screen().find(words) == std::string::npos; });
  }
  [[nodiscard]] pid_t shell() const { return std::stoi(tmux({"display-message", "-p", "#{pane_pid}"})); }
  /// The program that the shell runs in the foreground.
  [[nodiscard]] pid_t program() const {
    pid_t child = 0;
    testbed::wait_until("the shell runs a program", 30s, [&, shell = shell()] {
      std::ifstream stat(fmt::format("/proc/{}/stat", shell));
      std::string text{std::istreambuf_iterator<char>(stat), {}};
      std::istringstream fields(text.substr(text.rfind(')') + 2));  // state, ppid, pgrp, session, tty, foreground group
      std::string ignored;
      for (int i = 0; i < 5; ++i) fields >> ignored;
      return fields >> child && child > 0 && child != shell;
    });
    return child;
  }

 private:
  [[nodiscard]] std::string tmux(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{"tmux", "-u", "-S", socket_};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return testbed::run(command);
  }

  Testbed& testbed_;
  std::string socket_;
};

std::string top(const Agent& agent) {
  return fmt::format("{} --address {} top", testbed::evictctl_program().native(), agent.address());
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void run_neighbours(Testbed& testbed) {
  (void)testbed.cri().run_pod(
      {.name = "chill", .qos = QosClass::BestEffort, .containers = {{.args = {"hold", "32Mi"}}}});
  (void)testbed.cri().run_pod({.name = "vital",
                               .qos = QosClass::Burstable,
                               .priority = 2'000'000'000,
                               .containers = {{.args = {"hold", "128Mi"}}}});
  testbed::wait_until("the neighbours hold their memory", 60s,
                      [&] { return testbed.node().memory_usage() >= std::int64_t{160} << 20; });
}

}  // namespace

TEST_CASE("top shows bars with thresholds, the ranking and a real eviction, in every size") {
  SKIP_UNLESS(testbed::find_program("tmux"), "no tmux");
  Testbed testbed{gibi_node};
  run_neighbours(testbed);
  Agent agent{testbed, {.thresholds = thresholds}};
  agent.wait_for_pods(2);
  const Terminal terminal{testbed, 80, 24, "C.UTF-8"};
  terminal.enter(top(agent));
  terminal.wait_for("default/chill");
  const auto memory = terminal.line("memory.available ");
  CAPTURE(terminal.screen());
  CHECK(memory.find("█") < memory.find("╎"));  // in use, then the soft threshold, then the hard one
  CHECK(memory.find("╎") < memory.find("┃"));
  CHECK(memory.find("500Mi") != std::string::npos);  // the next one
  CHECK(terminal.line("default/chill").find("   1 default/chill") != std::string::npos);
  CHECK(terminal.line("default/vital").find("critical: never evicted") != std::string::npos);
  CHECK(terminal.line("no pressure") == " no pressure");

  terminal.resize(130, 40);
  terminal.wait_for("PRIORITY");
  CHECK(terminal.line("default/vital").find("2000000000") != std::string::npos);
  terminal.resize(40, 10);
  terminal.wait_until_gone("PRIORITY");
  terminal.wait_for("memory.available");
  terminal.wait_for("default/chill");
  terminal.resize(100, 30);
  terminal.wait_for("EVICTS<");

  (void)testbed.cri().run_pod(
      {.name = "bloat", .qos = QosClass::BestEffort, .containers = {{.args = {"grow", "16Mi", "40Mi/s"}}}});
  terminal.wait_for("   1 default/bloat");
  terminal.wait_for("Mi/s");
  agent.events().wait_for(Event::CLEANUP_DONE, "default/bloat", 60s);
  terminal.wait_for("evicting default/bloat");
  terminal.wait_for("default/bloat: cleaned up");
  terminal.wait_for("1 eviction ");
  CHECK(terminal.coloured().find("\x1b[1m\x1b[31mEVICTION_INTENDED") != std::string::npos);
}

TEST_CASE("top's keys choose a signal and show the help") {
  SKIP_UNLESS(testbed::find_program("tmux"), "no tmux");
  Testbed testbed{gibi_node};
  run_neighbours(testbed);
  Agent agent{testbed, {.thresholds = thresholds}};
  agent.wait_for_pods(2);
  const Terminal terminal{testbed, 80, 24, "C.UTF-8"};
  terminal.enter(top(agent));
  terminal.wait_for("WHO GOES FIRST for memory.available");
  terminal.wait_for("default/chill");
  terminal.press("Up");  // from the first one to the last
  terminal.wait_for("WHO GOES FIRST for pid.available");
  terminal.wait_for("process");
  terminal.type("j");
  terminal.wait_for("WHO GOES FIRST for memory.available");
  terminal.type("?");
  terminal.wait_for("Ctrl-Z");
  terminal.type("?");
  terminal.wait_for("WHO GOES FIRST");
}

TEST_CASE("top leaves the terminal as it was, at q and when it is ended") {
  SKIP_UNLESS(testbed::find_program("tmux"), "no tmux");
  Testbed testbed{gibi_node};
  Agent agent{testbed, {.thresholds = thresholds}};
  const auto before = testbed.directory() / "before";
  const auto after = testbed.directory() / "after";
  const Terminal terminal{testbed, 120, 30, "C.UTF-8"};
  terminal.enter("stty -g >" + before.native());
  int times = 0;
  const auto leaves_by = [&](const std::function<void()>& end) {
    std::filesystem::remove(after);
    const auto text = fmt::format("what stood there at time {}", ++times);
    terminal.enter("clear; echo " + text);
    terminal.wait_for(text + "\nready>");
    terminal.enter(top(agent) + "; echo left with $?; stty -g >" + after.native());
    terminal.wait_for("WHO GOES FIRST");
    CHECK(terminal.screen().find(text) == std::string::npos);
    end();
    terminal.wait_for("left with 0\nready>");
    CHECK(terminal.screen().starts_with(text + "\n"));
    CHECK(terminal.screen().find("WHO GOES FIRST") == std::string::npos);
    CHECK_FALSE(contents(before).empty());
    CHECK(contents(after) == contents(before));
  };
  leaves_by([&] { terminal.type("q"); });
  leaves_by([&] { terminal.press("C-c"); });
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) leaves_by([&] { ::kill(terminal.program(), number); });
}

TEST_CASE(
    "top reads keys where its terminal is not the controlling one, and leaves what it shares with the shell alone") {
  SKIP_UNLESS(testbed::find_program("tmux"), "no tmux");
  Testbed testbed{gibi_node};
  Agent agent{testbed, {.thresholds = thresholds}};
  const Terminal terminal{testbed, 120, 30, "C.UTF-8"};
  terminal.enter("setsid --wait " + top(agent));
  terminal.wait_for("no pressure");
  terminal.type("k");
  terminal.wait_for("WHO GOES FIRST for pid.available");
  // Were it non-blocking, a write to a terminal that is full would fail.
  std::istringstream shared(contents(fmt::format("/proc/{}/fdinfo/0", terminal.shell())));
  std::string name;
  int flags = 0;
  while (shared >> name && name != "flags:") {
  }
  shared >> std::oct >> flags;
  REQUIRE(shared.good());
  CHECK((flags & O_NONBLOCK) == 0);
  terminal.type("q");
  terminal.wait_for("ready>");
}

TEST_CASE("top finds an agent that was away, and says so meanwhile") {
  SKIP_UNLESS(testbed::find_program("tmux"), "no tmux");
  Testbed testbed{gibi_node};
  run_neighbours(testbed);
  std::optional<Agent> agent{std::in_place, testbed, Agent::Options{.thresholds = thresholds}};
  agent->wait_for_pods(2);
  const Terminal terminal{testbed, 80, 24, "C.UTF-8"};
  terminal.enter(top(*agent));
  terminal.wait_for("no pressure");
  agent->process().kill();
  terminal.wait_for("NO AGENT for ");
  CHECK(!terminal.line("default/chill").empty());  // what was seen last
  agent.reset();
  agent.emplace(testbed, Agent::Options{.thresholds = thresholds});
  terminal.wait_until_gone("NO AGENT");
  terminal.wait_for("no pressure");

  agent.reset();
  terminal.wait_for("NO AGENT for ");
  terminal.type("q");
  terminal.wait_for("ready>");
}

TEST_CASE("where the locale is not UTF-8 top draws with ASCII") {
  SKIP_UNLESS(testbed::find_program("tmux"), "no tmux");
  Testbed testbed{gibi_node};
  run_neighbours(testbed);
  Agent agent{testbed, {.thresholds = thresholds}};
  agent.wait_for_pods(2);
  const Terminal terminal{testbed, 80, 24, "C"};
  terminal.enter(top(agent));
  terminal.wait_for("default/chill");
  const auto screen = terminal.screen();
  CHECK(std::ranges::all_of(screen, [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  const auto memory = terminal.line("memory.available ");
  CHECK(memory.find("##") < memory.find(':'));
  CHECK(memory.find(':') < memory.find('|'));
}

}  // namespace integration::top_test
