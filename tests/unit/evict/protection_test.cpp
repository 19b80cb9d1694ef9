#include "evict/protection.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <numeric>

namespace evictd::evict::protection_test {
namespace {

/// Pids that no process has: above every possible one.
std::vector<pid_t> strangers(std::size_t count) {
  std::vector<pid_t> pids(count);
  std::iota(pids.begin(), pids.end(), 5'000'000);
  return pids;
}

/// Processes that wait, in one session of their own.
struct Session {
  std::vector<pid_t> members;

  explicit Session(int count) {
    int pids[2];
    REQUIRE(::pipe(pids) == 0);
    leader_ = ::fork();
    if (leader_ == 0) {
      ::setsid();
      for (int i = 1; i <= count; ++i) {
        const auto pid = i == count ? ::getpid() : ::fork();
        if (pid == 0) {
          for (;;) ::pause();
        }
        if (::write(pids[1], &pid, sizeof(pid)) < 0) ::_exit(1);
      }
      for (;;) ::pause();
    }
    for (int i = 0; i < count; ++i) {
      pid_t pid = 0;
      REQUIRE(::read(pids[0], &pid, sizeof(pid)) == sizeof(pid));
      members.push_back(pid);
    }
    ::close(pids[0]);
    ::close(pids[1]);
    std::ranges::sort(members);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    for (const auto pid : members) ::kill(pid, SIGKILL);  // the leader is one of them
    ::waitpid(leader_, nullptr, 0);
  }

 private:
  pid_t leader_ = 0;
};

}  // namespace

TEST_CASE("a few processes are asked for one by one, and keep their order") {
  std::vector<pid_t> pids{7, 3, 5, 9};
  remove_protected(pids, [](pid_t pid) { return pid == 5; });
  CHECK(pids == std::vector<pid_t>{7, 3, 9});
}

TEST_CASE("of very many processes of one session only some are asked for") {
  const Session session{700};
  auto pids = session.members;
  std::size_t asked = 0;
  remove_protected(pids, [&](pid_t) {
    ++asked;
    return false;
  });
  CHECK(pids == session.members);
  CHECK(asked < 100);
}

TEST_CASE("a protected process is found in its session, however many others of another session there are") {
  const Session pod{700};
  const Session node{3};
  auto pids = pod.members;
  pids.insert(pids.end(), node.members.begin(), node.members.end());
  std::ranges::sort(pids);
  const auto vital = node.members[1];
  remove_protected(pids, [&](pid_t pid) { return pid == vital; });
  CHECK(pids.size() == 702);
  CHECK_FALSE(std::ranges::binary_search(pids, vital));
}

TEST_CASE("processes whose session is not known are all asked for") {
  auto pids = strangers(2000);
  const auto last = pids.back();
  remove_protected(pids, [&](pid_t pid) { return pid == last; });
  CHECK(pids.size() == 1999);
  CHECK(pids.back() == last - 1);
}

}  // namespace evictd::evict::protection_test
