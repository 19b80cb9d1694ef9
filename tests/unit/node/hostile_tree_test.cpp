// Trees as somebody makes them who wants the walk to hang, to get lost, to count others' files or to miss his own.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "fixture/mount.hpp"
#include "fixture/random.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/disk_usage.hpp"
#include "os/unix_address.hpp"
#include "support/skip.hpp"

namespace evictd::node::hostile_tree_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::Mount;
using fixture::Tree;
using fixture::value_of;

TreeUsage measure(const fs::path& path) {
  WalkBudget budget{100'000'000, 5min};
  return value_of(measure_tree(path, budget));
}

os::FileDescriptor open_directory(const fs::path& path) {
  return os::FileDescriptor{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

void require(bool done, const std::string& what) {
  if (!done) throw std::runtime_error(what + ": " + std::generic_category().message(errno));
}

/// Directories in one another, all called "d"; gone at the end, which no path could do.
class DeepTree {
 public:
  DeepTree(const fs::path& at, int depth) : deepest_{open_directory(at)}, depth_{depth} {
    for (int level = 0; level < depth_; ++level) {
      require(::mkdirat(deepest_.get(), "d", 0700) == 0, "mkdirat");
      deepest_ = os::FileDescriptor{::openat(deepest_.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    }
  }
  DeepTree(const DeepTree&) = delete;
  DeepTree& operator=(const DeepTree&) = delete;
  ~DeepTree() {
    for (int level = 0; level < depth_; ++level) {
      deepest_ = os::FileDescriptor{::openat(deepest_.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
      ::unlinkat(deepest_.get(), "d", AT_REMOVEDIR);
    }
  }
  [[nodiscard]] int deepest() const { return deepest_.get(); }

 private:
  os::FileDescriptor deepest_;
  int depth_;
};

/// Does something over and over in another thread until it goes.
class Meanwhile {
 public:
  explicit Meanwhile(std::function<void(int round)> act)
      : thread_{[this, act = std::move(act)] {
          while (!stop_) act(rounds_++);
        }} {}
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;
  ~Meanwhile() {
    stop_ = true;
    thread_.join();
  }
  [[nodiscard]] int rounds() const { return rounds_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;
};

/// A file system whose server answers nothing, ever: whoever looks into it waits.
class DeadMount {
 public:
  explicit DeadMount(fs::path directory)
      : directory_{std::move(directory)}, server_{::open("/dev/fuse", O_RDWR | O_CLOEXEC)} {
    const auto options = "fd=" + std::to_string(server_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    require(server_ && ::mount("dead", directory_.c_str(), "fuse", 0, options.c_str()) == 0, "mount a FUSE");
  }
  DeadMount(const DeadMount&) = delete;
  DeadMount& operator=(const DeadMount&) = delete;
  ~DeadMount() {
    server_.reset();  // those who wait get an error
    ::umount2(directory_.c_str(), MNT_DETACH);
  }

 private:
  fs::path directory_;
  os::FileDescriptor server_;
};

std::string kib(std::size_t count) { return std::string(count * 1024, 'x'); }

/// Some directories, files, links and hard links.
void grow(const fs::path& at, fixture::Random& random, int depth) {
  for (auto i = random.between(0, 8); i > 0; --i) {
    const auto name = at / ("n" + std::to_string(i));
    switch (random.between(0, depth > 0 ? 4 : 2)) {
      case 0: fs::create_symlink("..", name); break;
      case 1: std::ofstream(name) << kib(static_cast<std::size_t>(random.between(0, 20))); break;
      case 2:
        std::ofstream(name) << "x";
        fs::create_hard_link(name, at / ("again" + std::to_string(i)));
        break;
      default: fs::create_directory(name); grow(name, random, depth - 1);
    }
  }
}

}  // namespace

TEST_CASE("property: a walk that is made in pieces of any size finds what one in one piece finds") {
  for (const auto seed : fixture::seeds(60)) {
    CAPTURE(seed);
    fixture::Random random{seed};
    const Tree tree;
    grow(tree.path(), random, 4);
    const auto whole = measure(tree.path());
    TreeWalk walk{open_directory(tree.path())};
    auto before = walk.usage();
    for (bool done = false; !done;) {
      WalkBudget piece{random.between(0, 5), 1min};
      done = walk.go_on(piece);
      const auto now = walk.usage();
      CHECK(now.inodes >= before.inodes);
      CHECK(now.complete == done);
      before = now;
    }
    CHECK(walk.usage() == whole);
    WalkBudget none{0, 0s};
    CHECK(walk.go_on(none));
  }
}

TEST_CASE("pipes, sockets and devices are counted, and nothing waits for them") {
  const Tree tree{dir("d")};
  require(::mkfifo(tree.path("d/pipe").c_str(), 0600) == 0, "mkfifo");
  require(::mknod(tree.path("d/null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0, "mknod a character device");
  require(::mknod(tree.path("d/tty").c_str(), S_IFCHR | 0600, makedev(4, 64)) == 0, "mknod a serial line");
  require(::mknod(tree.path("d/disk").c_str(), S_IFBLK | 0600, makedev(7, 200)) == 0, "mknod a block device");
  const os::FileDescriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  require(os::bind_to(socket.get(), tree.path("d/socket").native()) == 0, "bind");
  const auto usage = measure(tree.path());
  CHECK(usage.inodes == 7);
  CHECK(usage.complete);
}

TEST_CASE("names of any bytes are walked") {
  const Tree tree;
  for (const auto& name : {std::string("\n"), std::string("\x1b[2J"), std::string("\xff\xfe"), std::string(255, 'x'),
                           std::string("..."), std::string(" "), std::string("-rf")}) {
    fs::create_directory(tree.path(name));
    std::ofstream(tree.path(name) / name) << "x";
  }
  const auto usage = measure(tree.path());
  CHECK(usage.inodes == 15);
  CHECK(usage.complete);
}

TEST_CASE("a tree of 15000 directories in one another is walked to its end") {
  const Tree tree{dir("beside", {file("f", kib(8))})};
  const DeepTree deep{tree.path(), 15'000};
  const os::FileDescriptor hidden{::openat(deep.deepest(), "hidden", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)};
  require(::write(hidden.get(), kib(64).data(), 64 << 10) == 64 << 10, "write");
  const auto usage = measure(tree.path());
  require(::unlinkat(deep.deepest(), "hidden", 0) == 0, "unlinkat");
  CHECK(usage.complete);
  CHECK(usage.inodes == 1 + 2 + 15'000 + 1);
  CHECK(usage.bytes >= 72 << 10);
}

TEST_CASE("of a tree that is deeper than any is meant to be the rest is counted, and that there is more") {
  const Tree tree{dir("beside", {file("f", kib(8))})};
  const DeepTree deep{tree.path(), 25'000};
  const auto usage = measure(tree.path());
  CHECK_FALSE(usage.complete);
  CHECK(usage.inodes == 20'000 + 2);
}

TEST_CASE("200000 files are counted, in one piece and in many") {
  SKIP_IF(Mount::impossible());
  const Tree tree{dir("many")};
  const auto mount = Mount::tmpfs(tree.path("many"), "size=16m,nr_inodes=250000");
  for (int d = 0; d < 20; ++d) {
    const auto directory = tree.path("many/" + std::to_string(d));
    fs::create_directory(directory);
    const auto at = open_directory(directory);
    for (int i = 0; i < 10'000; ++i)
      require(::mknodat(at.get(), std::to_string(i).c_str(), S_IFREG | 0600, 0) == 0, "mknodat");
  }
  const TreeUsage all{.bytes = 0, .inodes = 1 + 20 + 200'000, .complete = true};
  CHECK(measure(tree.path("many")) == all);
  TreeWalk walk{open_directory(tree.path("many"))};
  int pieces = 1;
  for (;; ++pieces) {
    WalkBudget piece{7'777, 1min};
    if (walk.go_on(piece)) break;
  }
  CHECK(walk.usage() == all);
  CHECK(pieces == 200'020 / 7'777 + 1);
}

TEST_CASE("directories take from a walk's budget when they are opened, too") {
  const Tree tree;
  constexpr int count = 1'300;  // one system call lists them all
  for (int i = 0; i < count; ++i) fs::create_directory(tree.path(std::to_string(i)));
  TreeWalk walk{open_directory(tree.path())};
  for (bool done = false; !done;) {
    const auto before = walk.usage().inodes;
    WalkBudget piece{1'000'000, 0s};
    done = walk.go_on(piece);
    CHECK(walk.usage().inodes - before <= 64);
  }
  CHECK(walk.usage() == measure(tree.path()));
}

TEST_CASE("a directory that becomes a symbolic link while it is walked leads nowhere") {
  const Tree outside;
  for (int i = 0; i < 200; ++i) outside.add("", file(std::to_string(i), kib(8)));
  const Tree tree{std::vector{dir("victim", {dir("d", {file("f", "x")})}), dir("aside")}};
  const auto victim = tree.path("victim");
  const auto link = tree.path("link");
  fs::create_directory_symlink(outside.path(), link);
  const Meanwhile swapping{
      [&](int) { ::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, victim.c_str(), RENAME_EXCHANGE); }};
  std::int64_t most = 0;
  for (int walks = 0; walks < 3000 || swapping.rounds() < 1000; ++walks) {
    const auto usage = measure(tree.path());
    most = std::max(most, usage.inodes);
  }
  // The tree itself, both names of the two, and what the directory holds, met twice at worst.
  CHECK(most <= 9);
}

TEST_CASE("files that grow, and directories that are moved about, end no walk and keep it from nothing else") {
  const Tree tree{std::vector{dir("a", {dir("moving", {dir("x", {file("f", "x")})})}), dir("b"), dir("c"),
                              dir("still", {file("large", kib(400)), file("growing", "")})}};
  const os::FileDescriptor growing{::open(tree.path("still/growing").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
  const Meanwhile changing{[&](int round) {
    const char* from[]{"a/moving", "b/moving", "c/moving"};
    std::rename(tree.path(from[round % 3]).c_str(), tree.path(from[(round + 1) % 3]).c_str());
    if (round % 100 == 0 && round < 100'000) (void)::write(growing.get(), kib(1).data(), 1024);
  }};
  for (int walks = 0; walks < 2000 || changing.rounds() < 1000; ++walks) {
    const auto usage = measure(tree.path());
    CHECK(usage.bytes >= 400 << 10);
    CHECK(usage.inodes >= 7);
    CHECK(usage.inodes <= 20);
  }
}

TEST_CASE("where the way back was moved away, the walk goes on further up") {
  const Tree tree{dir("before")};
  for (int i = 0; i < 5; ++i) tree.add("", dir("beside" + std::to_string(i), {file("f", "x")}));
  const DeepTree deep{tree.path(), 100};
  tree.add("", dir("aside"));
  // Directories are read in an order that the file system chooses: go on until the deepest was read.
  TreeWalk walk{open_directory(tree.path())};
  const auto middle =
      tree.path("d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d");
  for (int i = 0; i < 75; ++i) {
    WalkBudget one{1, 1min};
    if (walk.go_on(one)) break;
  }
  fs::rename(middle, tree.path("aside/d"));
  WalkBudget rest{1'000'000, 1min};
  CHECK(walk.go_on(rest));
  fs::rename(tree.path("aside/d"), middle);
  // The root, six directories beside, their five files, and what of the chain was met.
  CHECK(walk.usage().inodes >= 1 + 7 + 5 + 44);
}

TEST_CASE("what is mounted below, also from the same disk and onto itself, is not the tree's") {
  SKIP_IF(Mount::impossible());
  const Tree outside{file("large", kib(500))};
  const Tree tree{std::vector{dir("a", {dir("loop")}), dir("bound"), file("file", "x"), file("f", kib(8))}};
  const auto before = measure(tree.path());
  const auto bound = Mount::bind(outside.path(), tree.path("bound"));
  const auto over_file = Mount::bind(outside.path("large"), tree.path("file"));
  const auto loop = Mount::bind(tree.path(), tree.path("a/loop"));
  const auto usage = measure(tree.path());
  CHECK(usage.complete);
  CHECK(usage.inodes == before.inodes - 3);  // the two directories that are covered, and the file
  CHECK(usage.bytes < 100 << 10);
}

TEST_CASE("a mounted file system that never answers holds nobody up") {
  SKIP_IF(Mount::impossible());
  const Tree tree{std::vector{dir("dead"), dir("alive", {file("f", kib(8))})}};
  const DeadMount dead{tree.path("dead")};
  const auto usage = measure(tree.path());
  CHECK(usage.complete);
  CHECK(usage.inodes == 3);
}

}  // namespace evictd::node::hostile_tree_test
