#include "host/node_lock.hpp"

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "fixture/tree.hpp"

namespace evictd::host::node_lock_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;

std::string content(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_taken(const NodeLock::Taken& taken) { return std::holds_alternative<NodeLock>(taken); }

/// A process that has the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::filesystem::path& path) {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto taken = NodeLock::take(path, "7.8.9");
      if (is_taken(taken) && ::write(ready[1], "x", 1) == 1)
        for (;;) ::pause();
      ::_exit(1);
    }
    ::close(ready[1]);
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill(); }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("a lock that another process holds is refused with who that is, and free once it was killed") {
  const Tree tree{dir("run")};
  const auto path = tree.path("run/evictd/lock");  // the directory is made
  Holder holder{path};
  const auto refused = NodeLock::take(path, "1.2.3");
  const auto* held = std::get_if<NodeLock::Held>(&refused);
  REQUIRE(held != nullptr);
  const auto who = content(path);
  CHECK(who.starts_with("evictd 7.8.9, pid " + std::to_string(holder.pid()) + ", since 20"));
  CHECK(who.ends_with("Z\n"));
  CHECK(held->error.message ==
        "runtimeDirectory: another evictd guards this node (" + who.substr(0, who.size() - 1) + ") and holds " +
            path.native() + ": stop it first, or give this one a directory of its own if it guards another node");

  holder.kill();
  const auto taken = NodeLock::take(path, "1.2.3");
  REQUIRE(is_taken(taken));
  CHECK(content(path).starts_with("evictd 1.2.3, pid " + std::to_string(::getpid()) + ", since 20"));
  CHECK(content(path).find('\n') == content(path).size() - 1);  // nothing is left of the longer line before
}

TEST_CASE("a holder that was killed, and of which something still waits, keeps nobody from guarding the node") {
  const Tree tree;
  const auto path = tree.path("lock");
  std::array<int, 2> waits{};
  REQUIRE(::pipe(waits.data()) == 0);
  const auto holder = ::fork();
  if (holder == 0) {
    const auto taken = NodeLock::take(path, "7.8.9");
    // In place of a thread that hangs: whoever shares the open file keeps the lock.
    if (::fork() == 0) {
      ::close(waits[1]);
      char byte = 0;
      ::_exit(static_cast<int>(::read(waits[0], &byte, 1)));
    }
    ::_exit(is_taken(taken) ? 0 : 1);
  }
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(holder), &ended, WEXITED | WNOWAIT) == 0);  // nobody takes its end
  REQUIRE(ended.si_status == 0);
  const auto taken = NodeLock::take(path, "1.2.3");
  REQUIRE(std::holds_alternative<NodeLock::Unusable>(taken));
  CHECK(std::get<NodeLock::Unusable>(taken).error.message.find("its holder was killed") != std::string::npos);
  for (const auto end : waits) ::close(end);
  ::waitpid(holder, nullptr, 0);
}

TEST_CASE("a lock is one for all in a process, too, and ends with its object") {
  const Tree tree{dir("run")};
  const auto path = tree.path("run/lock");
  {
    auto first = NodeLock::take(path, "1");
    REQUIRE(is_taken(first));
    const auto moved = std::get<NodeLock>(std::move(first));
    CHECK(std::holds_alternative<NodeLock::Held>(NodeLock::take(path, "1")));
    CHECK(is_taken(NodeLock::take(tree.path("run/other"), "1")));
  }
  CHECK(is_taken(NodeLock::take(path, "1")));
}

TEST_CASE("a holder that is just ending is waited for") {
  const Tree tree{dir("run")};
  const auto path = tree.path("run/lock");
  std::optional<NodeLock> first{std::get<NodeLock>(NodeLock::take(path, "1"))};
  std::jthread ending{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first.reset();
  }};
  CHECK(is_taken(NodeLock::take(path, "2")));
}

TEST_CASE("nobody else can open the lock and hold it, nor one that an earlier evictd left for all to read") {
  const Tree tree{file("earlier", "")};
  std::filesystem::permissions(tree.path("earlier"), std::filesystem::perms{0644});
  const auto before = ::umask(022);
  for (const std::string name : {"new", "earlier"}) {
    CAPTURE(name);
    CHECK(is_taken(NodeLock::take(tree.path(name), "1")));
    CHECK(std::filesystem::status(tree.path(name)).permissions() == std::filesystem::perms{0600});
  }
  ::umask(before);
}

TEST_CASE("what a file holds that is no evictd's is shown as far as it can be") {
  const Tree tree{file("lock", std::string("\x1b[31m") + std::string(1000, 'x'))};
  const auto path = tree.path("lock");
  const auto taken = NodeLock::take(path, std::string(1, '\t'));
  REQUIRE(is_taken(taken));
  std::ofstream(path) << "\x1b[31m" << std::string(1000, 'x');
  const auto refused = NodeLock::take(path, "1");
  const auto& message = std::get<NodeLock::Held>(refused).error.message;
  CHECK(message.find("(\\x1b[31mxxx") != std::string::npos);
  CHECK(message.size() < 600);
  std::ofstream(path, std::ios::trunc).flush();
  const auto silent = NodeLock::take(path, "1");
  CHECK(std::get<NodeLock::Held>(silent).error.message.find("(it does not say which)") != std::string::npos);
}

TEST_CASE("where there can be no lock, that is said with its reason") {
  const Tree tree{{dir("run"), file("no-directory", "")}};
  REQUIRE(::mkfifo(tree.path("run/pipe").c_str(), 0644) == 0);
  std::filesystem::create_symlink(tree.path("no-directory"), tree.path("run/link"));
  const auto why = [&](const char* path) {
    const auto taken = NodeLock::take(tree.path(path), "1");
    const auto* unusable = std::get_if<NodeLock::Unusable>(&taken);
    return unusable != nullptr ? unusable->error.message : "usable";
  };
  const auto line = [&](const char* path, const char* reason) {
    return "runtimeDirectory: " + tree.path(path).native() + ": " + reason +
           "; a second evictd on this node would not be noticed";
  };
  CHECK(why("no-directory/lock") == line("no-directory/lock", "Not a directory"));
  CHECK(why("run/pipe") == line("run/pipe", "no regular file"));
  CHECK(why("run/link") == line("run/link", "Too many levels of symbolic links"));
  CHECK(why("run") == line("run", "Is a directory"));
}

}  // namespace evictd::host::node_lock_test
