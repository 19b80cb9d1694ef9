#include "evict/protection.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "fixture/tree.hpp"

namespace evictd::evict::protection_by_name_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::Tree;

// Beyond the largest pid the kernel gives: no thread of the test has it.
constexpr pid_t some_pid = 5'000'000;

/// Of a process in the node's own pid namespace, unless told otherwise.
Tree proc_of(const std::string& name, const std::string& namespace_pids = "5000000") {
  return Tree{
      dir(std::to_string(some_pid),
          {file("comm", name + "\n"), file("status", fmt::format("Name:\t{0}\nPid:\t{1}\nNSpid:\t{2}\nVmRSS:\t1 kB\n",
                                                                 name, some_pid, namespace_pids))})};
}

bool is_protected_as(const std::string& name, const std::string& namespace_pids = "5000000") {
  const auto tree = proc_of(name, namespace_pids);
  return is_protected(some_pid, tree.path().native());
}

/// A process that does nothing under a name of its own.
class Named {
 public:
  explicit Named(const char* name) {
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, name);
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    CHECK(::read(ready[0], &byte, 1) == 0);  // the child has its name once it let go of the pipe
    ::close(ready[0]);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  ~Named() { end(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void end() {
    if (ended_) return;
    ended_ = true;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
};

}  // namespace

TEST_CASE("evictd never signals itself, by whichever of its threads it is called") {
  CHECK(is_protected(::getpid()));
  pid_t thread_id = 0;
  bool is_protected_thread = false;
  std::thread([&] {
    thread_id = static_cast<pid_t>(::syscall(SYS_gettid));
    is_protected_thread = is_protected(thread_id);
  }).join();
  CHECK(thread_id != ::getpid());
  CHECK(is_protected_thread);
}

TEST_CASE("what the node cannot do without is protected by its name") {
  for (const auto* name : {"evictd", "containerd", "containerd-shim", "kubelet", "k3s-server"}) {
    CAPTURE(name);
    CHECK(is_protected_as(name));
  }
  for (const auto* name : {"evictctl", "containerd-stre", "kubelet-helper", "mykubelet", "sleep", ""}) {
    CAPTURE(name);
    CHECK_FALSE(is_protected_as(name));
  }
}

TEST_CASE("a container's process is not protected by calling itself containerd") {
  CHECK_FALSE(is_protected_as("containerd", "5000000\t1"));
  CHECK_FALSE(is_protected_as("kubelet", "5000000\t40\t1"));
}

TEST_CASE("what has ended is not protected") {
  const Tree empty;
  CHECK_FALSE(is_protected(some_pid, empty.path().native()));
  const Tree ending{dir(std::to_string(some_pid), {file("comm", "containerd\n")})};
  CHECK_FALSE(is_protected(some_pid, ending.path().native()));
}

TEST_CASE("real processes are told apart by the kernel's word for their names") {
  Named shim{"containerd-shim-runc-v2"};
  const Named other{"load"};
  CHECK(is_protected(shim.pid()));
  CHECK_FALSE(is_protected(other.pid()));
  shim.end();
  CHECK_FALSE(is_protected(shim.pid()));
}

}  // namespace evictd::evict::protection_by_name_test
