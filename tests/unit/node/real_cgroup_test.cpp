// The readers on the kernel's own files: what a fake tree cannot show is how an open file answers once its cgroup is
// removed, and whether the kernel's files are what we take them for. On cgroup v1 or v2, as this machine has it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "node/cgroup_processes.hpp"
#include "node/node_memory.hpp"
#include "node/node_pids.hpp"
#include "node/pod_cgroups.hpp"
#include "support/skip.hpp"
#include "testbed/leftovers.hpp"

namespace evictd::node::real_cgroup_test {
namespace {

using fixture::error_of;
using fixture::no_real_cgroups;
using fixture::own_cgroup;
using fixture::real_hierarchy;
using fixture::RealCgroup;
using fixture::Sleeper;
using fixture::value_of;

const core::Instant now{};

config::NodeSettings settings_of(const RealCgroup& node) {
  config::NodeSettings settings;
  settings.cgroup_root = node.path();
  settings.pods_cgroup = "kubepods";
  return settings;
}

/// A file that a process of the cgroup has written, which is therefore charged to it as cache.
class FileCache {
 public:
  FileCache(const RealCgroup& cgroup, std::int64_t size)
      : path_(std::filesystem::path(is_memory(std::filesystem::temp_directory_path())
                                        ? "/var/tmp"  // as on a Debian 13, whose /tmp is a tmpfs
                                        : std::filesystem::temp_directory_path()) /
              testbed::unique_name()) {
    fixture::in_child([&] {
      const std::vector<char> block(1 << 20, 'x');
      const os::FileDescriptor file(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      cgroup.put(::getpid());
      for (std::int64_t written = 0; written < size; written += std::ssize(block))
        if (::write(file.get(), block.data(), block.size()) != std::ssize(block))
          throw std::runtime_error("cannot write " + path_.native());
    });
  }
  FileCache(const FileCache&) = delete;
  FileCache& operator=(const FileCache&) = delete;
  ~FileCache() { ::unlink(path_.c_str()); }

  /// Not where files are memory themselves.
  [[nodiscard]] bool is_cache() const { return !is_memory(path_); }

 private:
  static bool is_memory(const std::filesystem::path& path) {
    struct statfs filesystem{};
    return ::statfs(path.c_str(), &filesystem) != 0 || filesystem.f_type == TMPFS_MAGIC;
  }

  std::filesystem::path path_;
};

/// Huge pages that nobody uses yet: they are taken from the machine's free memory all the same.
class HugePages {
 public:
  explicit HugePages(std::int64_t count) : count_{count} { write(count); }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  ~HugePages() { write(0); }

  [[nodiscard]] std::int64_t bytes() const { return count_ * (2 << 20); }

 private:
  static void write(std::int64_t count) { std::ofstream{"/proc/sys/vm/nr_hugepages"} << count; }

  std::int64_t count_;
};

/// Files of no bytes in memory: the kernel keeps an entry and an inode of each, which is slab that it cannot give back.
class EmptyFiles {
 public:
  explicit EmptyFiles(int count) : directory_{"/dev/shm/" + testbed::unique_name()} {
    std::filesystem::create_directory(directory_);
    for (int number = 0; number < count; ++number) std::ofstream{directory_ / std::to_string(number)};
  }
  EmptyFiles(const EmptyFiles&) = delete;
  EmptyFiles& operator=(const EmptyFiles&) = delete;
  ~EmptyFiles() { std::filesystem::remove_all(directory_); }

 private:
  std::filesystem::path directory_;
};

}  // namespace

TEST_SUITE_BEGIN("real cgroups");

TEST_CASE("a real node cgroup is read, is missed when it is removed, and is found again") {
  SKIP_IF(no_real_cgroups());
  const auto hierarchy = real_hierarchy();
  const RealCgroup cgroup(own_cgroup());
  cgroup.limit_memory(64 << 20);
  auto memory = value_of(NodeMemory::open(hierarchy, settings_of(cgroup)));

  const auto before = value_of(memory.read(now));
  CHECK(before.capacity == 64 << 20);
  CHECK(before.node_level.incarnation == 1);
  CHECK(before.observations[core::Signal::MemoryAvailable]->available <= 64 << 20);
  CHECK_FALSE(before.pods);

  cgroup.remove();
  CHECK(error_of(memory.read(now)) ==
        fmt::format("node.cgroupRoot: no cgroup \"{}\" in {}; create it or correct the key", cgroup.path(),
                    hierarchy.root().path()));
  cgroup.make();
  cgroup.limit_memory(32 << 20);
  const auto after = value_of(memory.read(now));
  CHECK(after.capacity == 32 << 20);
  CHECK(after.node_level.incarnation == 2);
}

TEST_CASE("the cgroups of a test run bear names by which a testbed knows what a killed run has left") {
  auto name = own_cgroup("-pods").substr(1);
  CHECK_FALSE(testbed::is_leftover(name));
  const auto ended = ::fork();
  if (ended == 0) ::_exit(0);
  REQUIRE(::waitpid(ended, nullptr, 0) == ended);
  const auto prefix = testbed::prefix_of(::getpid());
  REQUIRE(name.starts_with(prefix));
  CHECK(testbed::is_leftover(name.replace(0, prefix.size(), testbed::prefix_of(ended))));
}

TEST_CASE("real pods: their cgroup comes, goes and comes back") {
  SKIP_IF(no_real_cgroups());
  const auto hierarchy = real_hierarchy();
  const RealCgroup node(own_cgroup());
  const RealCgroup pods(own_cgroup("/kubepods"));
  auto memory = value_of(NodeMemory::open(hierarchy, settings_of(node)));
  CHECK(value_of(memory.read(now)).pods);
  CHECK_FALSE(value_of(memory.read(now)).pods_level);

  pods.limit_memory(16 << 20);
  CHECK(value_of(memory.read(now)).pods_level->capacity == 16 << 20);
  pods.remove();
  const auto without = value_of(memory.read(now));
  CHECK_FALSE(without.pods);
  CHECK_FALSE(without.pods_error);
  pods.make();
  pods.limit_memory(8 << 20);
  const auto back = value_of(memory.read(now)).pods_level;
  REQUIRE(back);
  CHECK(back->capacity == 8 << 20);
  CHECK(back->incarnation == 2);
}

TEST_CASE("a real pod is measured until it is removed, and its processes are listed") {
  SKIP_IF(no_real_cgroups());
  const auto hierarchy = real_hierarchy();
  const RealCgroup cgroup(own_cgroup());
  PodCgroups pods(hierarchy);
  pods.sync(std::array{PodCgroup{"uid", cgroup.path()}});
  CHECK(value_of(pods.usage("uid")) >= 0);
  CHECK(value_of(pods.working_set("uid")) >= 0);
  CHECK(value_of(pods.is_empty_or_gone("uid")));
  {
    Sleeper sleeper;
    cgroup.put(sleeper.pid());
    CHECK(value_of(pods.processes("uid")) == std::vector{sleeper.pid()});
    CHECK(value_of(pods.process_count("uid")) == 1);
    CHECK_FALSE(value_of(pods.is_empty_or_gone("uid")));
  }
  CHECK(value_of(pods.is_empty_or_gone("uid")));
  cgroup.remove();

  const auto vanished = pods.usage("uid");  // from the file that is still open
  REQUIRE_FALSE(vanished);
  CHECK(vanished.error().code == ENODEV);
  CHECK(vanished.error().is_gone());
  CHECK(pods.working_set("uid").error().code == ENOENT);  // it was closed, and there is none to open
  CHECK(value_of(pods.is_empty_or_gone("uid")));
}

TEST_CASE("what a real pod has in its file cache is used, but not in its working set") {
  SKIP_IF(no_real_cgroups());
  const auto hierarchy = real_hierarchy();
  const RealCgroup cgroup(own_cgroup());
  PodCgroups pods(hierarchy);
  pods.sync(std::array{PodCgroup{"uid", cgroup.path()}});
  constexpr std::int64_t size = 16 << 20;
  const FileCache file(cgroup, size);
  SKIP_UNLESS(file.is_cache(), "the files of $TMPDIR are memory themselves");
  CHECK(value_of(pods.usage("uid")) >= size);
  CHECK(value_of(pods.working_set("uid")) < size / 2);
  CHECK(value_of(pods.working_set_of(cgroup.path())) < size / 2);
}

TEST_CASE("the real machine as a node: its memory is what /proc/meminfo says") {
  SKIP_IF(no_real_cgroups());
  const auto hierarchy = real_hierarchy();
  auto memory = value_of(NodeMemory::open(hierarchy, {}));
  const auto reading = value_of(memory.read(now));
  const auto machine = value_of(value_of(Meminfo::open(value_of(os::Directory::open("/proc")))).read());
  CHECK(reading.capacity == machine.total);
  CHECK_FALSE(reading.node.limit);
  CHECK(reading.node.usage > 0);
  CHECK(reading.node.inactive_file > 0);
  CHECK(reading.observations[core::Signal::MemoryAvailable]->available > 0);
  if (hierarchy.version() == CgroupVersion::v2) {
    const auto used = machine.total - machine.free;
    CHECK(std::abs(reading.node.usage - used) < machine.total / 8);  // two readings of a machine that is at work
  }
}

/// It takes memory away from everybody, so only of a machine that is the test's own: tests/vm/guest.
TEST_CASE("cgroup v2: slab and huge pages are no memory of the node's pods; by the older rule they are" *
          doctest::skip(std::getenv("EVICTD_TEST_OWN_MACHINE") == nullptr)) {
  const auto hierarchy = real_hierarchy();
  if (std::getenv("EVICTD_TEST_OWN_MACHINE") == nullptr || hierarchy.version() != CgroupVersion::v2) return;
  config::NodeSettings older;
  older.memory_available = config::MemoryAvailable::MemFree;
  auto by_stat = value_of(NodeMemory::open(hierarchy, {}));
  auto by_free = value_of(NodeMemory::open(hierarchy, older));
  /// By how much the older rule has less available.
  const auto apart = [&] {
    return value_of(by_stat.read(now)).observations[core::Signal::MemoryAvailable]->available -
           value_of(by_free.read(now)).observations[core::Signal::MemoryAvailable]->available;
  };
  constexpr std::int64_t noise = 64 << 20;  // of a machine that is at work: half of what the pages are
  const auto begin = apart();
  {
    const HugePages pages{64};
    MESSAGE("64 huge pages: ", apart() - begin, " bytes");
    CHECK(apart() - begin > pages.bytes() - noise);
  }
  CHECK(std::abs(apart() - begin) < noise);
  const EmptyFiles files{100'000};
  MESSAGE("100000 files: ", apart() - begin, " bytes");
  CHECK(apart() - begin > std::int64_t{48} << 20);
}

TEST_CASE("real process ids: a cgroup's limit is the capacity, and its processes are the use") {
  SKIP_IF(no_real_cgroups());
  const auto hierarchy = real_hierarchy();
  const RealCgroup node(own_cgroup());
  const RealCgroup pod(own_cgroup("/pod"));
  auto pids = value_of(NodePids::open(hierarchy, settings_of(node)));
  core::Observations observations;
  const auto& observed = observations[core::Signal::PidAvailable];
  REQUIRE(pids.observe(observations, now).empty());
  CHECK(observed->capacity > 100);  // the machine's
  node.limit_pids(100);
  const Sleeper one;
  const Sleeper other;
  for (const auto* sleeper : {&one, &other}) pod.put(sleeper->pid());
  REQUIRE(pids.observe(observations, now).empty());
  CHECK(observed->capacity == 100);
  CHECK(observed->available == 98);
}

TEST_SUITE_END();

}  // namespace evictd::node::real_cgroup_test
