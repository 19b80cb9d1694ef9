#include "wake/oom_control.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "fixture/real_cgroup.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"
#include "wake/heard_sources.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::wake::oom_control_test {
namespace {

using fixture::dir;
using fixture::file;
using fixture::RealCgroup;
using fixture::Tree;

constexpr std::size_t mebi = 1 << 20;

/// A process in the cgroup that touches more than may be had there. The kernel kills it.
void overflow(const RealCgroup& cgroup) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    cgroup.put(::getpid());
    constexpr auto size = 64 * mebi;
    auto* memory =
        static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t at = 0; at < size; at += 4096) memory[at] = 1;
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  CHECK(WIFSIGNALED(status));
}

struct Watched : test::HeardSources {
  asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::vector<Wake> passes;
  OomControl oom;

  Watched(const node::CgroupHierarchy& hierarchy, const std::string& cgroup)
      : oom{reactor.get_executor(), wakes, hierarchy, cgroup} {
    wakes.listen(*this);
    asio::co_spawn(reactor, run(), asio::detached);
    reactor.poll();
    arm();
  }
  asio::awaitable<void> run() {
    for (;;) passes.push_back(co_await wakes.next());
  }
  void arm() {
    const Arming nothing;
    oom.arm(nothing);
  }
  /// Runs until so many passes began; gives up after a long time.
  bool wait_for_passes(std::size_t count) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (passes.size() < count && std::chrono::steady_clock::now() < give_up) reactor.run_one_for(100ms);
    return passes.size() >= count;
  }
  std::string state() { return oom.status().at(0).state; }
};

}  // namespace

TEST_CASE("a cgroup that is out of memory begins a pass, and goes on doing so after it was removed and made again") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  if (hierarchy.version() == node::CgroupVersion::v2) return;
  const RealCgroup cgroup{fixture::own_cgroup("-oom")};
  cgroup.limit_memory(8 * mebi);
  Watched watched{hierarchy, cgroup.path()};
  CHECK(watched.state() == "armed");
  overflow(cgroup);
  REQUIRE(watched.wait_for_passes(1));
  CHECK(watched.passes[0].source() == core::WakeSource::Oom);
  CHECK(watched.passes[0].reasons[0].detail == cgroup.path() + " is out of memory");
  CHECK(watched.oom.status().at(0).wakes >= 1);

  watched.reactor.poll();
  watched.passes.clear();
  cgroup.remove();
  watched.reactor.run_for(50ms);  // the eventfd of the removed cgroup speaks, and means nothing
  watched.arm();
  CHECK(watched.passes.empty());
  CHECK(watched.state() == "waiting: no such cgroup");

  cgroup.make();
  cgroup.limit_memory(8 * mebi);
  watched.arm();
  CHECK(watched.state() == "armed");
  CHECK(watched.oom.status().at(0).re_registrations == 1);
  watched.oom.rearm_all();
  watched.arm();
  CHECK(watched.oom.status().at(0).re_registrations == 2);
  overflow(cgroup);
  CHECK(watched.wait_for_passes(1));
  CHECK(watched.failures.empty());
}

TEST_CASE("a kernel that does not tell of OOM is complained of once, a cgroup that is not there yet not at all") {
  const Tree tree{dir("memory", {file("memory.usage_in_bytes", "0\n"), dir("node")})};
  const auto hierarchy = node::CgroupHierarchy::detect(tree.path());
  REQUIRE(hierarchy);
  Watched lacking{*hierarchy, "/node"};
  lacking.arm();
  REQUIRE(lacking.failures.size() == 1);
  CHECK(lacking.failures[0] == tree.path("memory/node/memory.oom_control").native() +
                                   ": No such file or directory; this kernel does not tell of OOM");
  CHECK(lacking.state().starts_with("failed: "));

  Watched early{*hierarchy, "/node/kubepods"};
  CHECK(early.failures.empty());
  CHECK(early.state() == "waiting: no such cgroup");
}

}  // namespace evictd::wake::oom_control_test
