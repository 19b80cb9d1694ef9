#include "wake/pod_files_watch.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <fstream>

#include "fixture/tree.hpp"

namespace evictd::wake {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;

/// Two pods with a volume each.
struct Pods {
  Tree tree{{dir("a", {dir("cache", {dir("deep"), file("old", "x")})}), dir("b", {dir("logs")})}};
  boost::asio::io_context reactor{1};
  std::vector<std::string> changed;
  Wakes wakes{reactor.get_executor()};
  PodFilesWatch watch{reactor.get_executor(), wakes, [this](const std::string& uid) { changed.push_back(uid); }};

  Pods() { sync(); }
  void sync() { sync({{"A", {tree.path("a")}}, {"B", {tree.path("b")}}}); }
  void sync(std::vector<PodFiles> pods) {
    Arming arming;
    arming.files = std::make_shared<const std::vector<PodFiles>>(std::move(pods));
    watch.arm(arming);
  }
  /// Who has changed since the last call.
  std::set<std::string> news() {
    reactor.restart();
    reactor.run_for(300ms);
    std::set<std::string> result(changed.begin(), changed.end());
    changed.clear();
    return result;
  }
  void write(const fs::path& path) const { std::ofstream{path, std::ios::app} << "more"; }
};

}  // namespace

TEST_CASE("a pod that writes, creates or removes is the one that changed") {
  Pods pods;
  CHECK(pods.watch.watches() == 5);
  CHECK(pods.news().empty());
  pods.write(pods.tree.path("a/cache/old"));
  CHECK(pods.news() == std::set<std::string>{"A"});
  pods.write(pods.tree.path("b/logs/0.log"));
  CHECK(pods.news() == std::set<std::string>{"B"});
  fs::remove(pods.tree.path("a/cache/old"));
  CHECK(pods.news() == std::set<std::string>{"A"});
}

TEST_CASE("directories that are made later are watched, those that go leave no watch") {
  Pods pods;
  fs::create_directories(pods.tree.path("a/cache/new/deeper"));
  CHECK(pods.news() == std::set<std::string>{"A"});
  CHECK(pods.watch.watches() == 7);
  pods.write(pods.tree.path("a/cache/new/deeper/file"));
  CHECK(pods.news() == std::set<std::string>{"A"});
  fs::remove_all(pods.tree.path("a/cache/new"));
  pods.news();
  CHECK(pods.watch.watches() == 5);
}

TEST_CASE("pods that left are not watched any more, and a symbolic link is not followed") {
  Pods pods;
  fs::create_directory_symlink(pods.tree.path("b"), pods.tree.path("a/cache/link"));
  pods.news();
  CHECK(pods.watch.watches() == 5);
  pods.sync({{"B", {pods.tree.path("b")}}});
  CHECK(pods.watch.watches() == 2);
  pods.write(pods.tree.path("a/cache/old"));
  CHECK(pods.news().empty());
}

TEST_CASE("two thousand pods come and go without leaving a watch") {
  Pods pods;
  const auto before = pods.watch.watches();
  for (int round = 0; round < 4; ++round) {
    std::vector<PodFiles> many;
    for (int i = 0; i < 500; ++i) {
      const auto path = pods.tree.path("b") / std::to_string(round * 500 + i);
      fs::create_directories(path / "volumes");
      many.push_back({std::to_string(round * 500 + i), {path}});
    }
    pods.sync(many);
    CHECK(pods.watch.watches() == 1000);
    pods.news();
  }
  pods.sync();
  pods.sync({});
  CHECK(pods.watch.watches() == 0);
  CHECK(before == 5);
}

}  // namespace evictd::wake
