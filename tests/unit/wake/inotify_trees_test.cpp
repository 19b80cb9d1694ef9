#include "wake/inotify_trees.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fixture/inotify_watches.hpp"
#include "fixture/tree.hpp"

namespace evictd::wake::inotify_trees_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Tree;

/// A number of /proc/self/status, in KiB.
long status_number(const std::string& key) {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;)
    if (word == key && status >> word) return std::stol(word);
  return 0;
}

/// Pods with a directory of their names each.
struct Pods {
  explicit Pods(const std::vector<fixture::Entry>& entries) : tree{entries} { REQUIRE(trees.open()); }

  os::FileResult<void> watch(const std::vector<std::string>& names) {
    WatchedPods pods;
    for (const auto& name : names)
      pods.push_back(std::make_shared<const PodFiles>(name, std::vector{tree.path(name).native()}));
    return trees.watch(pods);
  }
  /// So many directories, one in the other.
  std::string nest(std::string directory, std::size_t levels) {
    for (std::size_t level = 0; level < levels; ++level) std::filesystem::create_directory(directory += "/d");
    return directory;
  }

  Tree tree;
  boost::asio::io_context reactor{1};
  InotifyTrees trees{reactor.get_executor(), [](const std::string&) {}, tree.path("max_user_watches")};
};

}  // namespace

TEST_CASE("a pod that nests its directories is watched so deep and no deeper") {
  Pods pods{{dir("a")}};
  const auto deepest = pods.nest(pods.tree.path("a").native(), InotifyTrees::longest_path / 2);
  REQUIRE(pods.watch({"a"}));
  CHECK(pods.trees.watches() == InotifyTrees::longest_path / 2 + 1);
  CHECK_FALSE(pods.trees.describe().contains("more"));
  pods.nest(deepest, 50);
  pods.reactor.run_for(300ms);
  CHECK(pods.trees.watches() == InotifyTrees::longest_path / 2 + 1);
  CHECK(pods.trees.describe().ends_with(", more than it may watch in 1 pods"));
}

TEST_CASE("very many directories deep in a pod's tree take no more memory than the text of their paths") {
  Pods pods{{dir("a")}};
  const auto deep = pods.nest(pods.tree.path("a").native(), InotifyTrees::longest_path / 2 - 10);
  for (int i = 0; i < 2'000; ++i) std::filesystem::create_directory(fmt::format("{}/{}", deep, i));
  pods.nest(deep, 50);
  std::ofstream{"/proc/self/clear_refs"} << 5;  // the peak begins anew
  const auto before = status_number("VmRSS:");
  REQUIRE(pods.watch({"a"}));
  CHECK(status_number("VmHWM:") - before < 8 * 1024);
  CHECK(pods.trees.describe().ends_with(", more than it may watch in 1 pods"));
}

TEST_CASE("all pods together have half of the watches that a user may have, and more where more are allowed") {
  Pods pods{{dir("a", {dir("1"), dir("2"), dir("3")}), dir("b", {dir("1")}), file("max_user_watches", "8\n")}};
  const auto before = fixture::inotify_watches();
  REQUIRE(pods.watch({"a"}));
  CHECK(pods.trees.watches() == 4);
  const auto watched = pods.watch({"a", "b"});
  REQUIRE_FALSE(watched);
  CHECK(watched.error().message.contains("fs.inotify.max_user_watches"));
  std::filesystem::create_directory(pods.tree.path("a/late"));
  pods.reactor.run_for(300ms);
  CHECK(pods.trees.watches() == 5);  // with the pod's own directory
  CHECK(fixture::inotify_watches() == before + 5);
  REQUIRE(pods.watch({"b"}));  // one that leaves makes room
  CHECK(pods.trees.watches() == 2);
  pods.tree.write("max_user_watches", "14\n");
  REQUIRE(pods.watch({"a", "b"}));
  CHECK(pods.trees.watches() == 7);
  CHECK(fixture::inotify_watches() == before + 7);
}

}  // namespace evictd::wake::inotify_trees_test
