#include "wake/cgroup_watch.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "fixture/inotify_watches.hpp"
#include "fixture/openings.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"

namespace evictd::wake::cgroup_watch_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::inotify_watches;

/// Directories will do: what inotify tells of them is the same, but for their own end.
struct Watched final : CgroupListener {
  Watched() : Watched{{}, {}} {}
  /// Of directories elsewhere.
  Watched(const fs::path& node, const fs::path& pods)
      : watch{reactor.get_executor(), wakes, node.empty() ? tree.path("node") : node,
              pods.empty() ? tree.path("node/kubelet/kubepods") : pods, *this} {}

  fixture::Tree tree;
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  int changes = 0;
  CgroupWatch watch;

  void cgroups_changed() override { ++changes; }

  int news() {
    reactor.restart();
    reactor.run_for(100ms);
    reactor.poll();  // where this thread had no processor for so long
    return std::exchange(changes, 0);
  }
  int made(const char* directory) {
    fs::create_directory(tree.path(directory));
    return news();
  }
};

}  // namespace

TEST_CASE("cgroups are seen to come and go, from the node's down to the pods'") {
  Watched watched;
  CHECK(watched.made("node") == 0);
  watched.watch.arm({});  // it was not there before
  CHECK(watched.made("node/kubelet") >= 1);
  CHECK(watched.made("node/kubelet/kubepods") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/burstable") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod1") >= 1);
  fs::remove(watched.tree.path("node/kubelet/kubepods/burstable/pod1"));
  CHECK(watched.news() >= 1);
  CHECK(watched.made("node/kubelet/kubepods/pod2") >= 1);  // a Guaranteed one
  CHECK(watched.made("node/kubelet/kubepods/pod2/container") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/pod2/container/its own") == 0);
  CHECK(watched.made("node/other") >= 1);
  CHECK(watched.made("node/other/below") == 0);
}

TEST_CASE("what came is looked at, and not what was there before") {
  Watched watched;
  const std::string pods = "node/kubelet/kubepods";
  fs::create_directories(watched.tree.path(pods + "/burstable/pod1"));
  watched.watch.arm({});
  watched.news();
  const fixture::Openings openings(watched.tree.path(pods + "/burstable"));
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod2") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod2/container") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod1/container") >= 1);
  CHECK(openings.count() == 0);

  // With what is in it already, as it may be by then.
  fs::create_directories(watched.tree.path(pods + "/besteffort/pod3/container"));
  CHECK(watched.news() >= 1);
  CHECK(watched.made("node/kubelet/kubepods/besteffort/pod3/another") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/besteffort/pod4") >= 1);
  CHECK(openings.count() == 0);

  fs::remove_all(watched.tree.path(pods));
  fs::create_directories(watched.tree.path(pods + "/burstable/pod5"));
  CHECK(watched.news() >= 1);
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod5/container") >= 1);
  CHECK(watched.made("node/kubelet/kubepods/pod6") >= 1);
}

TEST_CASE("where the kernel had no room for what came, all that is there is looked at") {
  Watched watched;
  const auto burstable = watched.tree.path("node/kubelet/kubepods/burstable");
  fs::create_directories(burstable);
  watched.watch.arm({});
  watched.news();
  for (int i = 0; i < 10'000; ++i) {  // two events each, of 16,384 at most
    fs::create_directory(burstable / "x");
    fs::remove(burstable / "x");
  }
  fs::create_directory(burstable / "pod1");
  while (watched.news() > 0) {
  }
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod1/container") >= 1);
}

TEST_SUITE_BEGIN("real cgroups");

// cgroupfs leaves the watches of what is gone, and the user's are limited.
TEST_CASE("what went is watched no more") {
  SKIP_IF(fixture::no_real_cgroups());
  const auto hierarchy = fixture::real_hierarchy();
  const fixture::RealCgroup node(fixture::own_cgroup());
  const fs::path node_directory = fixture::value_of(hierarchy.memory(node.path())).path();
  std::optional<fixture::RealCgroup> pods(std::in_place, node.path() + "/kubepods");
  Watched watched{node_directory, node_directory / "kubepods"};
  const auto without = inotify_watches();
  for (int round = 0; round < 3; ++round) {
    const fixture::RealCgroup burstable(pods->path() + "/burstable");
    const fixture::RealCgroup pod1(burstable.path() + "/pod1");
    CHECK(watched.news() >= 1);
    CHECK(inotify_watches() == without + 2);
    {
      const fixture::RealCgroup pod2(burstable.path() + "/pod2");
      const fixture::RealCgroup guaranteed(pods->path() + "/pod3");
      CHECK(watched.news() >= 1);
      CHECK(inotify_watches() == without + 4);
      pod2.remove();
      pod2.make();  // with a watch of its own
      CHECK(watched.news() >= 1);
      CHECK(inotify_watches() == without + 4);
    }
    CHECK(watched.news() >= 1);
    CHECK(inotify_watches() == without + 2);
  }
  CHECK(watched.news() >= 1);
  CHECK(inotify_watches() == without);
  pods.reset();
  CHECK(watched.news() >= 1);
  CHECK(inotify_watches() == without - 1);
  pods.emplace(node.path() + "/kubepods");
  const fixture::RealCgroup pod4(pods->path() + "/pod4");
  CHECK(watched.news() >= 1);
  CHECK(inotify_watches() == without + 1);
  CHECK(watched.news() == 0);  // that a watch was taken back is no news
}

TEST_SUITE_END();

TEST_CASE(
    "a pod that makes and removes cgroups without a break is looked at now and then, and the last change is seen") {
  Watched watched;
  fs::create_directories(watched.tree.path("node/kubelet/kubepods/burstable/pod1"));
  watched.watch.arm({});
  watched.news();
  const auto container = watched.tree.path("node/kubelet/kubepods/burstable/pod1/container");
  constexpr int rounds = 500;
  for (int round = 0; round < rounds; ++round) {
    fs::create_directory(container);
    watched.reactor.poll();
    fs::remove(container);
    watched.reactor.poll();
  }
  CHECK(watched.changes >= 1);
  CHECK(watched.changes < rounds / 2);
  while (watched.news() > 0) {  // until it does not rest any more
  }
  fs::create_directory(container);
  watched.reactor.poll();
  CHECK(std::exchange(watched.changes, 0) == 1);
  fs::create_directory(watched.tree.path("node/kubelet/kubepods/burstable/pod2"));  // soon after that look
  CHECK(watched.news() >= 1);
}

TEST_CASE("a directory that could not be listed leaves the tree incomplete, and is tried again") {
  Watched watched;
  fs::create_directories(watched.tree.path("node/kubelet/kubepods/burstable/pod1"));
  {
    // What is open stays so; nothing else can be opened.
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    watched.watch.arm({});
    ::setrlimit(RLIMIT_NOFILE, &before);
  }
  CHECK(watched.watch.status().front().state.starts_with("failed"));
  watched.news();
  watched.watch.arm({});
  CHECK(watched.changes == 1);
  CHECK(watched.watch.status().front().state == "armed");
  watched.news();
  CHECK(watched.made("node/kubelet/kubepods/burstable/pod2") >= 1);
}

TEST_CASE("what could not be watched is tried again, and once it is, something may have come") {
  Watched watched;
  fs::create_directories(watched.tree.path("node/kubelet/kubepods/pod1"));
  CHECK(watched.news() == 0);
  watched.watch.arm({});
  CHECK(watched.changes == 1);
  watched.watch.arm({});
  CHECK(watched.news() == 1);
  CHECK(watched.made("node/kubelet/kubepods/pod2") >= 1);
}

}  // namespace evictd::wake::cgroup_watch_test
