#include "wake/pod_files.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <functional>
#include <optional>

#include "fixture/mount.hpp"
#include "fixture/tree.hpp"
#include "support/skip.hpp"
#include "wake/fanotify_trees.hpp"
#include "wake/inotify_trees.hpp"

namespace evictd::wake::pod_files_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;

using Uids = std::set<std::string>;

void append(const fs::path& path) { std::ofstream{path, std::ios::app} << "more"; }

WatchedPods watched(const std::vector<PodFiles>& pods) {
  WatchedPods result;
  for (const auto& pod : pods) result.push_back(std::make_shared<const PodFiles>(pod));
  return result;
}

/// Its own file system, where one can be mounted: whoever else writes to that of the tree fills fanotify's queue, and
/// what overflows it is told as a change of everybody's.
std::optional<fixture::Mount> own_disk(const Tree& tree) {
  std::optional<fixture::Mount> disk;
  if (!fixture::Mount::impossible()) disk.emplace(fixture::Mount::tmpfs(tree.path("disk"), "size=4m"));
  tree.add("disk", dir("pods", {dir("a", {dir("cache", {dir("deep"), file("old", "x")})}), dir("b", {dir("logs")}),
                                dir("mark")}));
  tree.add("disk", dir("elsewhere"));
  return disk;
}

/// Two pods with a volume each, watched by one or the other means, and a third whose changes mark a moment.
struct Pods {
  Tree tree{dir("disk")};
  std::optional<fixture::Mount> disk = own_disk(tree);
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::shared_ptr<const PodFiles> mark = std::make_shared<const PodFiles>("mark", std::vector{path("mark").native()});
  Uids changed;  // but for the mark
  bool marked = false;
  int marks = 0;
  int wake_ups = 0;
  PodFilesWatch watch;

  explicit Pods(bool fanotify, core::Duration interval = 1ms)
      : watch{reactor.get_executor(),
              wakes,
              {.interval = interval, .roots = {tree.path("disk/pods")}, .fanotify = fanotify},
              [this](const std::string& uid) {
                if (uid == mark->uid)
                  marked = true;
                else
                  changed.insert(uid);
              }} {
    boost::asio::co_spawn(reactor, count_wakes(), boost::asio::detached);
    arm({{"A", {path("a")}}, {"B", {path("b")}}});
  }

  boost::asio::awaitable<void> count_wakes() {
    for (;;) {
      co_await wakes.next();
      ++wake_ups;
    }
  }
  [[nodiscard]] fs::path path(const std::string& relative) const { return tree.path("disk/pods") / relative; }
  void arm(const std::vector<PodFiles>& pods) { arm(watched(pods)); }
  void arm(WatchedPods pods) {
    pods.push_back(mark);
    Arming arming;
    arming.watched = std::make_shared<const WatchedPods>(std::move(pods));
    watch.arm(arming);
    await([&] { return !state().starts_with("waiting"); });
  }
  /// Who has changed since the last call, where nobody need have. The kernel tells of changes in their order: once it
  /// has told of the mark, which is a single one, nothing more is to come of what was before.
  Uids rest() {
    marked = false;
    fs::create_symlink("nothing", path("mark") / std::to_string(marks++));
    await([&] { return marked; });
    return std::exchange(changed, {});
  }
  /// Who has changed, once somebody has: fanotify looks seldom while only others write to the file system.
  Uids news() {
    await([&] { return !changed.empty(); });
    return rest();
  }
  void await(const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < give_up) {
      reactor.restart();
      reactor.run_for(20ms);
    }
  }
  [[nodiscard]] std::string state() const { return watch.status().front().state; }
  [[nodiscard]] std::string detail() const { return watch.status().front().detail; }
};

/// fanotify takes privileges; without them the cases run with inotify alone.
std::vector<bool> means() {
  if (geteuid() == 0) return {false, true};
  return {false};
}

}  // namespace

TEST_CASE("a pod that writes, creates or removes is the one that changed, and begins a pass") {
  for (const bool fanotify : means()) {
    CAPTURE(fanotify);
    Pods pods{fanotify};
    REQUIRE_MESSAGE(pods.watch.status().front().state == "armed", pods.watch.status().front().state);
    CHECK(pods.detail().starts_with(fanotify ? "fanotify" : "inotify"));
    CHECK(pods.rest().empty());
    append(pods.path("a/cache/old"));
    CHECK(pods.news() == Uids{"A"});
    append(pods.path("b/logs/0.log"));
    CHECK(pods.news() == Uids{"B"});
    const auto before = pods.wake_ups;
    fs::remove(pods.path("a/cache/old"));
    CHECK(pods.news() == Uids{"A"});
    CHECK(pods.wake_ups > before);
    CHECK(pods.watch.status().front().wakes >= 3);  // writing and closing are two changes where the machine is slow
    append(pods.tree.path("disk/elsewhere/file"));
    CHECK(pods.rest().empty());
  }
}

TEST_CASE("directories that are made later are watched, those of pods that left are not") {
  for (const bool fanotify : means()) {
    CAPTURE(fanotify);
    Pods pods{fanotify};
    fs::create_directories(pods.path("a/cache/new/deeper"));
    CHECK(pods.news() == Uids{"A"});
    append(pods.path("a/cache/new/deeper/file"));
    CHECK(pods.news() == Uids{"A"});
    pods.arm({{"B", {pods.path("b")}}, {"C", {pods.path("c")}}});
    append(pods.path("a/cache/old"));
    CHECK(pods.rest().empty());
    fs::create_directories(pods.path("c"));
    pods.arm({{"B", {pods.path("b")}}, {"C", {pods.path("c")}}});  // the next list finds what was missing
    append(pods.path("c/file"));
    CHECK(pods.news() == Uids{"C"});
  }
}

TEST_CASE("however often pods write, passes begin once an interval, and the last change is told") {
  for (const bool fanotify : means()) {
    CAPTURE(fanotify);
    Pods pods{fanotify, 1h};
    append(pods.path("a/cache/old"));
    pods.await([&] { return !pods.changed.empty(); });
    CHECK(std::exchange(pods.changed, {}) == Uids{"A"});
    append(pods.path("a/cache/old"));
    append(pods.path("b/logs/0.log"));
    pods.reactor.restart();
    pods.reactor.run_for(300ms);
    CHECK(pods.changed.empty());
    CHECK(pods.wake_ups == 1);
  }
  Pods quick{false, 400ms};
  append(quick.path("a/cache/old"));
  CHECK(quick.news() == Uids{"A"});
  append(quick.path("b/logs/0.log"));
  CHECK(quick.news() == Uids{"B"});
}

TEST_CASE("a pod that stays the same is not looked through anew, but for what was not there; one that left is nobody") {
  for (const bool fanotify : means()) {
    CAPTURE(fanotify);
    Pods pods{fanotify};
    auto same = watched(
        {{"A", {pods.path("a").native()}}, {"B", {pods.path("b").native()}}, {"C", {pods.path("later").native()}}});
    pods.arm(same);
    fs::create_directory(pods.path("later"));
    pods.arm(same);
    pods.rest();
    append(pods.path("later/file"));
    CHECK(pods.news() == Uids{"C"});
    append(pods.path("a/cache/old"));
    CHECK(pods.news() == Uids{"A"});
    same.erase(same.begin());
    pods.arm(same);
    pods.rest();  // what was told late of A
    append(pods.path("a/cache/old"));
    append(pods.path("b/logs/0.log"));
    CHECK(pods.news() == Uids{"B"});
    // Another pod has its directory by now.
    same.push_back(std::make_shared<const PodFiles>("D", std::vector{pods.path("a").native()}));
    pods.arm(same);
    append(pods.path("a/cache/old"));
    CHECK(pods.news() == Uids{"D"});
  }
}

TEST_CASE("a file system mounted in a pod's volume is watched like the rest of the pod") {
  SKIP_IF(fixture::Mount::impossible());
  for (const bool fanotify : means()) {
    CAPTURE(fanotify);
    Pods pods{fanotify};
    const auto memory = fixture::Mount::tmpfs(pods.path("a/cache/deep"), "size=1m");
    pods.arm({{"A", {pods.path("a/cache")}}});
    append(pods.path("a/cache/deep/file"));
    CHECK(pods.news() == Uids{"A"});
  }
}

TEST_CASE("inotify: one watch a directory, none left of directories and pods that are gone") {
  Tree tree{{dir("a", {dir("cache", {dir("deep")})}), dir("b")}};
  boost::asio::io_context reactor{1};
  InotifyTrees trees{reactor.get_executor(), [](const std::string&) {}};
  REQUIRE(trees.open());
  const auto watch = [&](const std::vector<PodFiles>& pods) { return trees.watch(watched(pods)).has_value(); };
  REQUIRE(watch({{"A", {tree.path("a")}}, {"B", {tree.path("b")}}}));
  CHECK(trees.watches() == 4);
  fs::create_directory_symlink(tree.path("b"), tree.path("a/cache/link"));
  fs::create_directories(tree.path("a/cache/new/deeper"));
  reactor.run_for(300ms);
  CHECK(trees.watches() == 6);
  fs::remove_all(tree.path("a/cache"));
  reactor.run_for(300ms);
  CHECK(trees.watches() == 2);
  REQUIRE(watch({{"B", {tree.path("b")}}}));
  CHECK(trees.watches() == 1);
}

TEST_CASE("inotify: a pod has so many watches and no more, however many directories and files it makes") {
  Tree tree{{dir("a"), dir("b", {dir("logs")})}};
  boost::asio::io_context reactor{1};
  Uids changed;
  InotifyTrees trees{reactor.get_executor(), [&](const std::string& uid) { changed.insert(uid); }};
  REQUIRE(trees.open());
  for (std::size_t i = 0; i < InotifyTrees::most_watches + 500; ++i)
    fs::create_directory(tree.path("a") / std::to_string(i));
  REQUIRE(trees.watch(watched({{"A", {tree.path("a")}}, {"B", {tree.path("b")}}})));
  CHECK(trees.watches() == InotifyTrees::most_watches + 2);
  CHECK(trees.describe().ends_with(", more than it may watch in 1 pods"));
  for (std::size_t i = 0; i < 100; ++i) fs::create_directory(tree.path("a") / ("late" + std::to_string(i)));
  fs::create_directory(tree.path("b/late"));
  append(tree.path("b/logs/0.log"));
  reactor.run_for(300ms);
  CHECK(changed == Uids{"A", "B"});
  CHECK(trees.watches() == InotifyTrees::most_watches + 3);
  fs::remove_all(tree.path("a"));
  reactor.restart();
  reactor.run_for(500ms);
  CHECK(trees.watches() == 3);

  // Of very many files some are looked at for directories.
  Tree files{dir("c", {dir("d")})};
  for (std::size_t i = 0; i < InotifyTrees::most_entries + 100; ++i) std::ofstream{files.path("c") / std::to_string(i)};
  REQUIRE(trees.watch(watched({{"C", {files.path("c")}}})));
  CHECK(trees.watches() <= 2);
  CHECK(trees.describe().ends_with(" in 1 pods"));
}

TEST_CASE("inotify: of all that comes together so much is looked at, and what one pod does is in no other one's way") {
  Tree tree{{dir("a"), dir("b"), dir("outside", {dir("1"), dir("2"), dir("3"), dir("4", {dir("below")})})}};
  constexpr auto files = InotifyTrees::most_entries * 2 / 5;
  for (const auto* directory : {"1", "2", "3"})
    for (std::size_t i = 0; i < files; ++i) std::ofstream{tree.path("outside") / directory / std::to_string(i)};
  boost::asio::io_context reactor{1};
  Uids changed;
  InotifyTrees trees{reactor.get_executor(), [&](const std::string& uid) { changed.insert(uid); }};
  const auto comes_true = [&](const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!condition() && std::chrono::steady_clock::now() < give_up) {
      reactor.restart();
      reactor.run_for(20ms);
    }
    return condition();
  };
  REQUIRE(trees.open());
  REQUIRE(trees.watch(watched({{"A", {tree.path("a")}}, {"B", {tree.path("b")}}})));
  for (const auto* directory : {"1", "2", "3"})
    fs::rename(tree.path("outside") / directory, tree.path("a") / directory);
  fs::rename(tree.path("outside/4"), tree.path("b/4"));
  CHECK(comes_true([&] { return changed == Uids{"A", "B"}; }));
  append(tree.path("b/file"));  // with whatever comes next the others are looked at
  CHECK(comes_true([&] { return trees.describe().ends_with(", more than it may watch in 1 pods"); }));
  changed.clear();
  append(tree.path("b/4/below/file"));
  CHECK(comes_true([&] { return changed == Uids{"B"}; }));
}

TEST_CASE("inotify: what becomes a symbolic link on the way to a directory is not watched") {
  Tree tree{
      {dir("a", {dir("b", {dir("c", {dir("d")})})}), dir("outside", {dir("c", {dir("d", {dir("e")}), dir("f")})})}};
  boost::asio::io_context reactor{1};
  InotifyTrees trees{reactor.get_executor(), [](const std::string&) {}};
  REQUIRE(trees.open());
  REQUIRE(trees.watch(watched({{"A", {tree.path("a")}}})));
  CHECK(trees.watches() == 4);
  // The event tells of a new directory in a/b/c, which by now is elsewhere.
  fs::create_directory(tree.path("a/b/c/f"));
  fs::rename(tree.path("a/b"), tree.path("a/was"));
  fs::create_directory_symlink(tree.path("outside"), tree.path("a/b"));
  reactor.run_for(300ms);
  CHECK(trees.watches() <= 5);
  fs::create_directory(tree.path("outside/c/g"));
  reactor.restart();
  reactor.run_for(300ms);
  CHECK(trees.watches() <= 5);
  REQUIRE(trees.watch(watched({{"A", {tree.path("a")}}, {"O", {tree.path("outside")}}})));
  CHECK(trees.watches() == 5 + 6);
}

TEST_CASE("two thousand pods come and go without leaving a watch") {
  Tree tree{{dir("pods")}};
  boost::asio::io_context reactor{1};
  InotifyTrees trees{reactor.get_executor(), [](const std::string&) {}};
  REQUIRE(trees.open());
  for (int round = 0; round < 4; ++round) {
    std::vector<PodFiles> many;
    for (int i = 0; i < 500; ++i) {
      const auto name = std::to_string(round * 500 + i);
      fs::create_directories(tree.path("pods") / name / "volumes");
      many.push_back({name, {tree.path("pods") / name}});
    }
    REQUIRE(trees.watch(watched(many)));
    CHECK(trees.watches() == 1000);
    // Half of the pods' directories go before the pods do.
    for (int i = 0; i < 250; ++i) fs::remove_all(tree.path("pods") / std::to_string(round * 500 + i));
    reactor.restart();
    reactor.run_for(200ms);
    CHECK(trees.watches() == 500);
  }
  REQUIRE(trees.watch({}));
  CHECK(trees.watches() == 0);
}

TEST_CASE("fanotify takes one mark for all pods, and a flood of events loses none of them") {
  SKIP_UNLESS(geteuid() == 0, "not root");
  Tree tree{{dir("pods", {dir("quiet"), dir("loud")})}};
  boost::asio::io_context reactor{1};
  Uids changed;
  FanotifyTrees trees{reactor.get_executor(), [&](const std::string& uid) { changed.insert(uid); }};
  const std::vector<fs::path> roots{tree.path("pods"), tree.path("pods/not/yet")};
  REQUIRE(trees.open(roots));
  CHECK(trees.describe() == "fanotify on 1 file system");
  const std::vector<PodFiles> pods{{"quiet", {tree.path("pods/quiet")}}, {"loud", {tree.path("pods/loud")}}};
  REQUIRE(trees.watch(watched(pods)));
  for (int i = 0; i < 20'000; ++i) append(tree.path("pods/loud") / std::to_string(i));  // more than the queue holds
  append(tree.path("pods/quiet/file"));
  for (int i = 0; i < 100 && changed.size() < 2; ++i) {
    reactor.restart();
    reactor.run_for(100ms);
  }
  CHECK(changed == Uids{"loud", "quiet"});
}

TEST_CASE("fanotify knows directories of one file system by each of the mounts that show them") {
  SKIP_UNLESS(geteuid() == 0, "not root");
  SKIP_IF(fixture::Mount::impossible());
  const Tree tree{{dir("disk"), dir("kubelet"), dir("logs")}};
  const auto disk = fixture::Mount::tmpfs(tree.path("disk"), "size=4m");
  tree.add("disk", dir("x", {dir("kubelet", {dir("b")}), dir("logs", {dir("a")})}));
  const auto kubelet = fixture::Mount::bind(tree.path("disk/x/kubelet"), tree.path("kubelet"));
  const auto logs = fixture::Mount::bind(tree.path("disk/x/logs"), tree.path("logs"));
  boost::asio::io_context reactor{1};
  Uids changed;
  FanotifyTrees trees{reactor.get_executor(), [&](const std::string& uid) { changed.insert(uid); }};
  const std::vector<fs::path> roots{tree.path("kubelet"), tree.path("logs")};
  REQUIRE(trees.open(roots));
  CHECK(trees.describe() == "fanotify on 1 file system");
  REQUIRE(trees.watch(watched({{"A", {tree.path("logs/a")}}, {"B", {tree.path("kubelet/b")}}})));
  const auto tells = [&](const std::string& uid) {
    for (int i = 0; i < 50 && changed.empty(); ++i) {
      reactor.restart();
      reactor.run_for(100ms);
    }
    return std::exchange(changed, {}) == Uids{uid};
  };
  append(tree.path("kubelet/b/file"));
  CHECK(tells("B"));
  append(tree.path("logs/a/file"));
  CHECK(tells("A"));
}

}  // namespace evictd::wake::pod_files_test
