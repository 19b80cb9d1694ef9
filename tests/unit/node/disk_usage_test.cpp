#include "node/disk_usage.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "fixture/mount.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/filesystem.hpp"
#include "support/skip.hpp"

namespace evictd::node::disk_usage_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::error_of;
using fixture::file;
using fixture::Mount;
using fixture::Tree;
using fixture::value_of;

WalkBudget plenty() { return {1'000'000, 1min}; }

TreeUsage measure(const fs::path& path) {
  auto budget = plenty();
  return value_of(measure_tree(path, budget));
}

/// What the file system allotted to one file or directory.
std::int64_t allocated(const fs::path& path) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0) throw std::runtime_error("lstat " + path.native());
  return file.st_blocks * 512;
}

/// The process may open no more than this many for a while.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = count, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

std::string kib(std::size_t count) { return std::string(count * 1024, 'x'); }

}  // namespace

TEST_CASE("a tree holds its files, its directories and itself") {
  const Tree tree{std::vector{file("a", kib(100)), dir("d", {file("b", kib(50)), dir("empty")})}};
  const auto usage = measure(tree.path());
  std::int64_t expected = allocated(tree.path());
  for (const auto& entry : fs::recursive_directory_iterator(tree.path())) expected += allocated(entry.path());
  CHECK(usage == TreeUsage{.bytes = expected, .inodes = 5});
  CHECK(usage.bytes >= 150 << 10);
}

TEST_CASE("a file with several names counts once") {
  const Tree tree{std::vector{dir("d"), file("a", kib(100))}};
  const auto before = measure(tree.path());
  fs::create_hard_link(tree.path("a"), tree.path("d/same"));
  fs::create_hard_link(tree.path("a"), tree.path("again"));
  CHECK(measure(tree.path()).inodes == before.inodes);
  CHECK(measure(tree.path()).bytes < before.bytes + (100 << 10));
}

TEST_CASE("a sparse file counts what it holds, not how long it is") {
  const Tree tree{file("sparse", "")};
  fs::resize_file(tree.path("sparse"), 1 << 30);
  const auto usage = measure(tree.path());
  CHECK(usage.inodes == 2);
  CHECK(usage.bytes < 1 << 20);
}

TEST_CASE("symbolic links are counted and not followed") {
  const Tree elsewhere{file("large", kib(1000))};
  const Tree tree{dir("d")};
  fs::create_directory_symlink(elsewhere.path(), tree.path("out"));
  fs::create_directory_symlink("..", tree.path("d/up"));
  fs::create_symlink("self", tree.path("self"));
  fs::create_symlink("nowhere", tree.path("dangling"));
  const auto usage = measure(tree.path());
  CHECK(usage.inodes == 6);
  CHECK(usage.complete);
  CHECK(usage.bytes < 1000 << 10);
}

TEST_CASE("a tree that is a symbolic link, a file or nothing is an error") {
  const Tree tree{std::vector{dir("d"), file("f", "")}};
  fs::create_directory_symlink("d", tree.path("link"));
  auto budget = plenty();
  CHECK(error_of(measure_tree(tree.path("link"), budget)) == tree.path("link").native() + ": Not a directory");
  CHECK(error_of(measure_tree(tree.path("f"), budget)) == tree.path("f").native() + ": Not a directory");
  CHECK(measure_tree(tree.path("none"), budget).error().is_gone());
}

TEST_CASE("sockets and pipes are inodes like others, and nothing waits for a writer") {
  const Tree tree;
  REQUIRE(::mkfifo(tree.path("pipe").c_str(), 0600) == 0);
  CHECK(measure(tree.path()).inodes == 2);
}

TEST_CASE("a tree may be deeper than there are descriptors and than a path may be long") {
  const Tree tree;
  constexpr int depth = 200;
  const std::string name(100, 'd');
  int at = ::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int level = 0; level < depth && at >= 0; ++level) {
    // A sibling above each level: the way back up must find it.
    if (::mkdirat(at, "sibling", 0700) != 0 || ::mkdirat(at, name.c_str(), 0700) != 0) FAIL("mkdirat");
    const int below = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(at);
    at = below;
  }
  REQUIRE(at >= 0);
  TreeUsage usage;
  {
    const FewDescriptors few(depth / 2);
    usage = measure(tree.path());
  }
  CHECK(usage.inodes == 1 + 2 * depth);
  CHECK(usage.complete);
  // Removed from below: a path to it would be too long.
  for (int level = 0; level < depth; ++level) {
    const int above = ::openat(at, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(at);
    at = above;
    if (::unlinkat(at, name.c_str(), AT_REMOVEDIR) != 0 || ::unlinkat(at, "sibling", AT_REMOVEDIR) != 0)
      FAIL("unlinkat");
  }
  ::close(at);
}

TEST_CASE("a walk ends with its budget and says that there is more") {
  const Tree tree;
  for (int i = 0; i < 50; ++i) tree.add("", file(std::to_string(i), ""));
  WalkBudget small{10, 1min};
  CHECK(value_of(measure_tree(tree.path(), small)) ==
        TreeUsage{.bytes = allocated(tree.path()), .inodes = 11, .complete = false});
  // The same budget for another tree is used up already.
  CHECK_FALSE(value_of(measure_tree(tree.path(), small)).complete);

  WalkBudget exact{50, 1min};
  CHECK(value_of(measure_tree(tree.path(), exact)).complete);
}

TEST_CASE("a walk ends when its time is over, or when it is told to stop") {
  const Tree tree;
  for (int i = 0; i < 100; ++i) tree.add("", file(std::to_string(i), ""));
  WalkBudget late{1'000'000, 0s};
  CHECK_FALSE(value_of(measure_tree(tree.path(), late)).complete);

  std::stop_source stop;
  stop.request_stop();
  WalkBudget stopped{1'000'000, 1min, stop.get_token()};
  CHECK_FALSE(value_of(measure_tree(tree.path(), stopped)).complete);
}

TEST_CASE("files that come and go while they are walked over are no failure") {
  const Tree tree{dir("churn")};
  const auto churn = tree.path("churn");
  std::atomic<int> rounds = 0;
  std::thread changer([&] {
    for (; rounds < 3; ++rounds) {
      std::error_code ignored;
      for (int i = 0; i < 60; ++i) {
        fs::create_directory(churn / std::to_string(i), ignored);
        std::ofstream(churn / std::to_string(i) / "f") << "x";
      }
      for (const auto& entry : fs::directory_iterator(churn)) fs::remove_all(entry.path(), ignored);
    }
  });
  bool complete = true;
  while (rounds < 3) {
    auto budget = plenty();
    const auto usage = measure_tree(tree.path(), budget);
    complete = complete && usage && usage->complete && usage->inodes >= 2;
  }
  changer.join();
  CHECK(complete);
  CHECK(measure(tree.path()).inodes == 2);
}

TEST_CASE("a directory that may not be read makes the sum incomplete, and the rest is counted") {
  const Tree tree{std::vector{dir("closed", {file("f", "")}), dir("open", {file("f", "")})}};
  REQUIRE(::chmod(tree.path("closed").c_str(), 0) == 0);
  // Root may read everything: the walk is made by a thread that is another user to the file system.
  constexpr uid_t nobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root) fs::permissions(tree.path(), fs::perms::all);
  std::optional<os::FileResult<TreeUsage>> usage;
  std::thread([&] {
    if (root) ::setfsuid(nobody);
    auto budget = plenty();
    usage = measure_tree(tree.path(), budget);
  }).join();
  REQUIRE(::chmod(tree.path("closed").c_str(), 0700) == 0);
  REQUIRE(usage);
  CHECK_FALSE(value_of(*usage).complete);
  CHECK(value_of(*usage).inodes == 3);
}

TEST_CASE("what is mounted below belongs to another device") {
  SKIP_IF(Mount::impossible());
  const Tree tree{std::vector{dir("mounted"), file("f", "")}};
  const auto mount = Mount::tmpfs(tree.path("mounted"), "size=1m");
  tree.add("mounted", file("large", kib(500)));
  const auto usage = measure(tree.path());
  CHECK(usage.inodes == 2);
  CHECK(usage.complete);
  CHECK(usage.bytes < 500 << 10);
  // So does a single file that is another device's.
  const auto over_file = Mount::bind(tree.path("mounted/large"), tree.path("f"));
  CHECK(measure(tree.path()).inodes == 1);
  // Walked by itself it is measured like any other.
  CHECK(measure(tree.path("mounted")) == TreeUsage{.bytes = 500 << 10, .inodes = 2});
}

TEST_CASE("a directory that is also mounted further down counts once") {
  SKIP_IF(Mount::impossible());
  const Tree tree{std::vector{dir("a", {file("f", kib(100)), dir("loop")}), dir("again")}};
  const auto before = measure(tree.path());
  const auto loop = Mount::bind(tree.path(), tree.path("a/loop"));
  const auto again = Mount::bind(tree.path("a"), tree.path("again"));
  const auto usage = measure(tree.path());
  CHECK(usage.complete);
  CHECK(usage.inodes <= before.inodes);
  CHECK(usage.bytes <= before.bytes);
}

TEST_CASE("on an ext4 the sum is what the file system lost") {
  SKIP_IF(Mount::impossible());
  const Tree tree{dir("mounted")};
  const auto mount = Mount::ext4(tree.path("image"), 16 << 20, tree.path("mounted"));
  const auto free = value_of(read_filesystem(tree.path("mounted")));
  const auto before = measure(tree.path("mounted"));
  tree.add("mounted", dir("d", {file("large", kib(1000)), file("small", "x")}));
  ::sync();  // blocks are allotted when the data is written
  const auto after = measure(tree.path("mounted"));
  const auto left = value_of(read_filesystem(tree.path("mounted")));
  CHECK(after.bytes - before.bytes >= 1000 << 10);
  CHECK(after.bytes - before.bytes == free.available - left.available);
  CHECK(after.inodes - before.inodes == free.inodes->free - left.inodes->free);
}

}  // namespace evictd::node::disk_usage_test
