#include "evictctl/interruption.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "api/running_server.hpp"
#include "fixture/places.hpp"
#include "os/unix_address.hpp"

extern char** environ;

namespace evictd::ctl::interruption_test {
namespace {

using test::RunningServer;
using test::TemporaryDirectory;

/// evictctl as a process of its own; its output is read through pipes, and it does not outlive the test.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), evictd::fixture::evictctl_program);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);

    std::array<int, 2> out{};
    std::array<int, 2> err{};
    REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(err.data(), O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    const int spawned =
        ::posix_spawn(&pid_, evictd::fixture::evictctl_program, &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
    REQUIRE(spawned == 0);
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(out_);
    ::close(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }

  /// One line of its output, without the end.
  std::string read_line() const {
    std::string line;
    for (char c = 0; ::read(out_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

  std::string read_errors() const {
    std::string text;
    for (char c = 0; ::read(err_, &c, 1) == 1;) text += c;
    return text;
  }

  /// Its exit code, or -1 if a signal ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
};

std::vector<std::string> follow(const std::string& socket) {
  return {"--address", "unix://" + socket, "events", "--follow", "-o", "json"};
}

TEST_CASE("whoever follows events and is interrupted has not failed") {
  RunningServer running;
  for (const int signal : {SIGINT, SIGTERM}) {
    running.append(1);
    Process evictctl(follow(running.socket));
    CHECK(evictctl.read_line().find("\"sequence\":\"1\"") != std::string::npos);
    evictctl.send(signal);
    CHECK(evictctl.wait() == 0);
    CHECK(evictctl.read_errors() == "");
  }
}

TEST_CASE("whoever follows events sees each one at once, and fails when the agent goes away") {
  RunningServer running;
  running.append(1);
  Process evictctl(follow(running.socket));
  CHECK(evictctl.read_line().find("\"sequence\":\"1\"") != std::string::npos);
  running.append(1);
  CHECK(evictctl.read_line().find("\"sequence\":\"2\"") != std::string::npos);
  running.reactor.run([&] { running.server->shutdown(); });
  CHECK(evictctl.wait() == 1);
  CHECK(evictctl.read_errors() == "evictctl: the agent at " + running.socket + " went away (evictd shuts down)\n");
}

TEST_CASE("an agent that accepts but does not answer is given up, with or without --follow") {
  const TemporaryDirectory directory;
  const auto path = directory / "s";
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(os::bind_to(fd, path) == 0);
  REQUIRE(::listen(fd, 8) == 0);
  // All at once: each waits some seconds.
  Process follows({"--address", path, "events", "--follow"});
  Process replays({"--address", path, "events"});
  Process status({"--address", path, "status"});
  for (Process* process : {&follows, &replays, &status}) {
    CHECK(process->wait() == 1);
    CHECK(process->read_errors() == "evictctl: the agent at " + path + " does not answer\n");
  }
  ::close(fd);
}

}  // namespace
}  // namespace evictd::ctl::interruption_test
