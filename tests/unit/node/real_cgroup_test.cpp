// The readers on the kernel's own files: what a fake tree cannot show is how an open file answers once its cgroup is
// removed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include "fixture/result.hpp"
#include "node/cgroup_processes.hpp"
#include "node/node_memory.hpp"
#include "node/pod_cgroups.hpp"

namespace evictd::node {
namespace {

using fixture::error_of;
using fixture::value_of;

constexpr const char* mount = "/sys/fs/cgroup";
const core::Instant now{};

/// Why the tests cannot run on this machine, said once; "" where they can.
const std::string& obstacle() {
  static const std::string reason = [] {
    std::string text;
    const auto hierarchy = CgroupHierarchy::detect(mount);
    if (!hierarchy)
      text = hierarchy.error().message;
    else if (hierarchy->version() != CgroupVersion::v1)
      text = "the memory controller is on cgroup v2, whose delegation is the init system's";
    else if (::faccessat(hierarchy->root().descriptor(), ".", W_OK, AT_EACCESS) != 0)
      text = "not root: no cgroup can be made in " + hierarchy->root().path();
    if (!text.empty()) std::printf("skipped, tests on real cgroups: %s\n", text.c_str());
    return text;
  }();
  return reason;
}

bool impossible() { return !obstacle().empty(); }

/// A cgroup that is removed at the end, whatever happened in between.
class RealCgroup {
 public:
  RealCgroup(const CgroupHierarchy& hierarchy, std::string path)
      : path_(std::move(path)), directory_(hierarchy.root().path() + path_) {
    make();
  }
  RealCgroup(const RealCgroup&) = delete;
  RealCgroup& operator=(const RealCgroup&) = delete;
  ~RealCgroup() { ::rmdir(directory_.c_str()); }

  void make() const {
    if (::mkdir(directory_.c_str(), 0755) != 0) throw std::runtime_error("cannot make " + directory_);
  }
  void remove() const {
    if (::rmdir(directory_.c_str()) != 0) throw std::runtime_error("cannot remove " + directory_);
  }
  void write(const char* file, const std::string& text) const {
    std::ofstream stream(directory_ + "/" + file);
    stream << text << std::flush;
    if (!stream) throw std::runtime_error(fmt::format("cannot write {}/{}", directory_, file));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string directory_;
};

/// A process that waits until it is killed, at the latest at the end of the test program.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
    if (pid_ < 0) throw std::runtime_error("cannot fork");
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  ~Sleeper() { stop(); }

  void stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

std::string own_name(std::string_view suffix = "") { return fmt::format("/evictd-unit-{}{}", ::getpid(), suffix); }

}  // namespace

TEST_CASE("a real node cgroup is read, is missed when it is removed, and is found again" *
          doctest::skip(impossible())) {
  const auto hierarchy = value_of(CgroupHierarchy::detect(mount));
  const RealCgroup cgroup(hierarchy, own_name());
  cgroup.write("memory.limit_in_bytes", "64M");
  config::NodeSettings settings;
  settings.cgroup_root = cgroup.path();
  auto memory = value_of(NodeMemory::open(hierarchy, settings));

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
  cgroup.write("memory.limit_in_bytes", "32M");
  const auto after = value_of(memory.read(now));
  CHECK(after.capacity == 32 << 20);
  CHECK(after.node_level.incarnation == 2);
}

TEST_CASE("real pods: their cgroup comes, goes and comes back" * doctest::skip(impossible())) {
  const auto hierarchy = value_of(CgroupHierarchy::detect(mount));
  const RealCgroup node(hierarchy, own_name());
  const RealCgroup pods(hierarchy, own_name("/kubepods"));
  config::NodeSettings settings;
  settings.cgroup_root = node.path();
  auto memory = value_of(NodeMemory::open(hierarchy, settings));
  CHECK(value_of(memory.read(now)).pods);
  CHECK_FALSE(value_of(memory.read(now)).pods_level);

  pods.write("memory.limit_in_bytes", "16M");
  CHECK(value_of(memory.read(now)).pods_level->capacity == 16 << 20);
  pods.remove();
  const auto without = value_of(memory.read(now));
  CHECK_FALSE(without.pods);
  CHECK_FALSE(without.pods_error);
  pods.make();
  pods.write("memory.limit_in_bytes", "8M");
  const auto back = value_of(memory.read(now)).pods_level;
  REQUIRE(back);
  CHECK(back->capacity == 8 << 20);
  CHECK(back->incarnation == 2);
}

TEST_CASE("a real pod is measured until it is removed, and its processes are listed" * doctest::skip(impossible())) {
  const auto hierarchy = value_of(CgroupHierarchy::detect(mount));
  const RealCgroup cgroup(hierarchy, own_name());
  PodCgroups pods(hierarchy);
  pods.sync(std::array{PodCgroup{"uid", cgroup.path()}});
  CHECK(value_of(pods.usage("uid")) >= 0);
  CHECK(value_of(pods.working_set("uid")) >= 0);
  CHECK(value_of(pods.is_empty_or_gone("uid")));
  {
    Sleeper sleeper;
    cgroup.write("cgroup.procs", std::to_string(sleeper.pid()));
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

}  // namespace evictd::node
