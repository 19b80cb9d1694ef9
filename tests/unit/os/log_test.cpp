#include "os/log.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

using namespace std::chrono_literals;

// The log is the process's, so each case runs in a child of its own, whose stderr is a pipe.

namespace evictd::os::log_test {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    read = ends[0];
    write = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_reader();
    close_writer();
  }
  void close_reader() { close_end(read); }
  void close_writer() { close_end(write); }
  /// By single bytes: what is more than there is room for would not be written at all.
  void fill() const {
    const int flags = ::fcntl(write, F_GETFL);
    REQUIRE(::fcntl(write, F_SETPIPE_SZ, 4096) == 4096);
    REQUIRE(::fcntl(write, F_SETFL, flags | O_NONBLOCK) == 0);
    while (::write(write, "-", 1) == 1) {
    }
    REQUIRE(::fcntl(write, F_SETFL, flags) == 0);
  }
  /// Until all writers are gone.
  [[nodiscard]] std::string read_all() const {
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t size = 0; (size = ::read(read, buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(size));
    return text;
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

/// Runs it in a child that has the pipe as its stderr. What it returns is the exit code.
pid_t in_child(const Pipe& pipe, int (*work)()) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child > 0) return child;
  ::dup2(pipe.write, STDERR_FILENO);
  ::close(pipe.write);
  ::close(pipe.read);
  ::alarm(60);  // a child that hangs fails the case, and no more
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::unsetenv("JOURNAL_STREAM");
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGABRT, SIG_DFL);
  ::_exit(work());
}

/// As a shell counts.
int exit_code(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a service's log keeps its order, and is complete at the end of the process") {
  Pipe pipe;
  const auto child = in_child(pipe, [] {
    log_in_background();
    for (int i = 0; i < 500; ++i) log_info("line {}", i);
    return flush_log(30s) ? 0 : 1;
  });
  pipe.close_writer();
  std::string expected;
  for (int i = 0; i < 500; ++i) expected += fmt::format("evictd: line {}\n", i);
  CHECK(pipe.read_all() == expected);
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a pipe that nobody reads holds up neither who logs nor the end of the process") {
  Pipe pipe;
  pipe.fill();
  const auto child = in_child(pipe, [] {
    log_in_background();
    for (int i = 0; i < 10'000; ++i) log_info("line {}", i);
    return flush_log(100ms) ? 1 : 0;
  });
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a reader that comes back is told how much it has missed") {
  Pipe pipe;
  pipe.fill();
  const auto child = in_child(pipe, [] {
    log_in_background();
    for (int i = 0; i < 10'000; ++i) log_info("line {}", i);
    log_error("the last one");
    ::raise(SIGSTOP);  // all of it is said before anybody reads
    return flush_log(30s) ? 0 : 1;
  });
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  REQUIRE(WIFSTOPPED(status));
  ::kill(child, SIGCONT);
  pipe.close_writer();
  const auto text = pipe.read_all();
  CHECK(text.find("-evictd: line 0\nevictd: line 1\n") != std::string::npos);
  CHECK(text.find(" of the log were dropped because its reader was too slow\n") != std::string::npos);
  CHECK(exit_code(child) == 0);
}

TEST_CASE("a reader that leaves ends a service's log, and no service") {
  Pipe pipe;
  pipe.close_reader();
  const auto child = in_child(pipe, [] {
    log_in_background();
    for (int i = 0; i < 10; ++i) log_info("line {}", i);
    return flush_log(30s) ? 7 : 1;
  });
  CHECK(exit_code(child) == 7);
}

TEST_CASE("a command that logs without a thread writes at once, and ends by SIGPIPE as others do") {
  Pipe pipe;
  const auto talker = in_child(pipe, [] {
    log_warning("one");
    log_warning("two");
    return 0;
  });
  pipe.close_writer();
  CHECK(pipe.read_all() == "evictd: one\nevictd: two\n");
  CHECK(exit_code(talker) == 0);

  Pipe unread;
  unread.close_reader();
  const auto child = in_child(unread, [] {
    log_warning("one");
    return 0;
  });
  CHECK(exit_code(child) == 128 + SIGPIPE);
}

TEST_CASE("an exception on a thread that nothing catches is a line behind the others, and ends the process") {
  Pipe pipe;
  const auto child = in_child(pipe, [] {
    log_in_background();
    log_info("before");
    std::thread{[] { throw std::runtime_error("out of luck"); }}.join();
    return 0;
  });
  pipe.close_writer();
  CHECK(pipe.read_all() == "evictd: before\nevictd: ends, for nothing caught an exception: out of luck\n");
  CHECK(exit_code(child) == 128 + SIGABRT);
}

}  // namespace evictd::os::log_test
