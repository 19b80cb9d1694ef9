#include "wake/tripwire.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "fixture/node_tree.hpp"
#include "fixture/real_cgroup.hpp"
#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "node/memory_high.hpp"
#include "os/now.hpp"
#include "support/skip.hpp"
#include "wake/heard_sources.hpp"

namespace evictd::wake::tripwire_test {
namespace {

using namespace std::chrono_literals;
using fixture::dir;
using fixture::file;
using fixture::own_cgroup;
using fixture::real_hierarchy;
using fixture::RealCgroup;
using fixture::value_of;

constexpr std::int64_t MiB = std::int64_t{1} << 20;

std::vector<fixture::Entry> pods_files() {
  auto files = fixture::v2_memory({.usage = 300 * MiB});
  files.push_back(file("memory.high", "max\n"));
  files.push_back(file("memory.events.local", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n"));
  return files;
}

Arming arming_at(core::Instant read, std::int64_t threshold, std::int64_t available, bool releasing = false) {
  Arming arming;
  arming.levels = {{.signal = core::Signal::MemoryAvailable,
                    .hard = true,
                    .threshold = threshold,
                    .available = available,
                    .time = read}};
  arming.time = read;
  arming.releasing = releasing;
  return arming;
}

/// A v2 node of 1 GiB that uses 400 MiB, 300 of them in pods, with a hard threshold of 100 MiB. Its files announce
/// nothing.
struct Node : test::HeardSources {
  fixture::Tree tree{fixture::v2_node(
      {.total = 4096 * MiB, .free = 2048 * MiB, .available = 2048 * MiB}, 0,
      {dir("lab", fixture::v2_memory({.usage = 400 * MiB, .limit = 1024 * MiB}, {dir("kubepods", pods_files())}))})};
  config::NodeSettings settings = fixture::settings_for(tree, "/lab");
  node::CgroupHierarchy hierarchy = value_of(node::CgroupHierarchy::detect(settings.cgroup_mount));
  node::NodeMemory memory = value_of(node::NodeMemory::open(hierarchy, settings));
  boost::asio::io_context reactor{1};
  Wakes wakes{reactor.get_executor()};
  std::optional<Tripwire> tripwire;

  explicit Node(bool among_pods = false) {
    wakes.listen(*this);
    tripwire.emplace(reactor.get_executor(), wakes, hierarchy, memory,
                     Tripwire::Options{.note = tree.path("fence"),
                                       .among_pods = among_pods,
                                       .rule = {.shortest_rest = 1s, .longest_hold = 1s},
                                       .fastest_look = 20ms});
  }
  /// As after a pass, which reads what the files say.
  void pass(bool releasing = false) {
    const auto read = os::now();
    tripwire->arm(
        arming_at(read, 100 * MiB, memory.available(core::Signal::MemoryAvailable).value_or(624 * MiB), releasing));
  }
  void use(std::int64_t node_usage, std::int64_t pods_usage, std::int64_t inactive_file = 0) const {
    tree.write("cgroup/lab/memory.current", std::to_string(node_usage * MiB) + "\n");
    tree.write("cgroup/lab/memory.stat", fixture::v2_stat(inactive_file * MiB));
    tree.write("cgroup/lab/kubepods/memory.current", std::to_string(pods_usage * MiB) + "\n");
  }
  bool comes_true(const auto& condition) {
    for (const auto give_up = os::now() + 20s; !condition() && os::now() < give_up; reactor.restart())
      reactor.run_for(10ms);
    return condition();
  }
  /// The kernel's word.
  void trip() { tripwire->high_exceeded(); }

  /// Bytes, without the margin.
  [[nodiscard]] std::optional<std::int64_t> level() const {
    const auto bytes = value_of(node::read_memory_high(value_of(hierarchy.memory("/lab/kubepods"))));
    return bytes ? std::optional(*bytes - tripwire_margin()) : std::nullopt;
  }
  [[nodiscard]] SourceStatus status() const { return tripwire->status().at(0); }
};

/// A process that takes memory once it is told to, and keeps it.
class Hog {
 public:
  explicit Hog(std::size_t bytes) {
    if (::pipe(pipe_.data()) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char go = 0;
      if (::read(pipe_[0], &go, 1) != 1) ::_exit(1);
      auto* const memory = static_cast<volatile char*>(
          ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
      for (;;) ::pause();
    }
    if (pid_ < 0) throw std::runtime_error("cannot fork");
  }
  Hog(const Hog&) = delete;
  Hog& operator=(const Hog&) = delete;
  ~Hog() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int end : pipe_) ::close(end);
  }

  void go() const { REQUIRE(::write(pipe_[1], "g", 1) == 1); }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  std::array<int, 2> pipe_{};
  pid_t pid_ = -1;
};

}  // namespace

TEST_CASE("it stands where the pods' growth would meet the threshold, a margin above, and goes with its source") {
  Node node;
  CHECK_FALSE(node.level().has_value());
  CHECK(tripwire_margin() > fence_tolerance);
  node.pass();
  CHECK(node.level() == (300 + 1024 - 400 - 100) * MiB);
  CHECK(node.status().name == "tripwire /lab/kubepods");
  CHECK(node.status().state == "armed");
  CHECK(node.status().level == *node.level() + tripwire_margin());
  CHECK(node.status().detail == "tripped 0x, 0x for nothing");
  CHECK(std::filesystem::exists(node.tree.path("fence")));
  node.tripwire.reset();
  CHECK_FALSE(node.level().has_value());
  CHECK_FALSE(std::filesystem::exists(node.tree.path("fence")));
}

TEST_CASE("without a wake-up it follows file cache and what others than pods use") {
  Node node;
  node.pass();
  node.use(550, 300);
  node.reactor.run_for(500ms);
  CHECK(node.level() == (300 + 1024 - 550 - 100) * MiB);
  node.use(550, 300, 50);
  node.reactor.run_for(1s);
  CHECK(node.level() == (300 + 1024 - 500 - 100) * MiB);
  CHECK(node.status().wakes == 0);
  CHECK(node.status().rearms == 2);
}

TEST_CASE("what it cannot express has none: soft thresholds, and those that are not of memory") {
  Node node;
  auto arming = arming_at(os::now(), 100 * MiB, 624 * MiB);
  arming.levels[0].hard = false;
  arming.levels.push_back({.signal = core::Signal::NodefsAvailable, .threshold = 1 << 30, .available = 1 << 20});
  node.tripwire->arm(arming);
  CHECK_FALSE(node.level().has_value());
  CHECK(node.status().state == "waiting: no hard memory threshold");
}

TEST_CASE("its event wakes a pass, the pods are held until the kill, and it stands again once the memory is back") {
  Node node;
  node.pass();
  const auto level = node.level();
  node.use(930, 830);
  node.trip();
  CHECK(node.status().wakes == 1);
  node.pass();
  CHECK(node.level() == level);
  node.pass(true);
  CHECK_FALSE(node.level().has_value());
  CHECK(node.status().state == "lifted: an evicted pod's memory is coming back, or evictd only watches");
  node.use(400, 300);
  node.pass();
  CHECK(node.level() == level);
  CHECK(node.status().detail == "tripped 1x, 0x for nothing");
  CHECK(node.status().spurious == 0);
}

TEST_CASE("tripped by file cache it is lifted at once, and set again after a rest, where the cache is counted") {
  Node node;
  node.pass();
  node.use(930, 830, 500);
  node.trip();
  node.pass();
  CHECK_FALSE(node.level().has_value());
  CHECK(node.status().state.starts_with("waiting: nothing was short when it fired; "));
  CHECK(node.status().spurious == 1);
  node.pass();
  CHECK_FALSE(node.level().has_value());
  CHECK(node.comes_true([&] { return node.level() == (830 + 1024 - 430 - 100) * MiB; }));
  CHECK(node.status().wakes == 1);
}

TEST_CASE("where nobody goes the pods are held for a while only") {
  Node node;
  node.pass();
  node.use(930, 830);
  node.trip();
  node.pass();
  CHECK(node.level().has_value());
  CHECK(node.comes_true([&] { return !node.level(); }));
  CHECK(node.status().state == "lifted: memory is short");
}

TEST_CASE("a shortage that no pass has seen wakes one: others than pods took the memory") {
  Node node;
  node.pass();
  node.use(930, 300);
  CHECK(node.comes_true([&] { return node.status().wakes >= 1; }));
  CHECK(node.status().detail == "tripped 0x, 0x for nothing");
}

TEST_CASE("what is crossed between a pass's reading and its own look wakes another pass") {
  for (const std::int64_t pods_usage : {830, 300}) {  // they crossed it, or others took the memory
    CAPTURE(pods_usage);
    Node node;
    node.pass();
    const auto read = os::now();
    node.use(930, pods_usage);
    node.tripwire->arm(arming_at(read, 100 * MiB, 624 * MiB));
    CHECK(node.status().wakes == 1);
    for (int i = 0; i < 3; ++i) node.pass();  // which find it short, and tell nothing new
    node.use(400, 300);
    for (int i = 0; i < 3; ++i) node.pass();
    CHECK(node.status().wakes == 1);
  }
}

TEST_CASE("someone else's memory.high is left alone, said in the status, and to the end") {
  Node node;
  node.pass();
  node.tree.write("cgroup/lab/kubepods/memory.high", "209715200\n");
  node.pass();
  CHECK(node.level() == 200 * MiB - tripwire_margin());
  CHECK(node.status().state == "off: memory.high of /lab/kubepods is 209715200, set by someone else");
  CHECK_FALSE(node.status().level.has_value());
  node.tripwire.reset();
  CHECK(node.level() == 200 * MiB - tripwire_margin());
}

TEST_CASE("once someone else's memory.high is gone it stands") {
  Node node;
  node.tree.write("cgroup/lab/kubepods/memory.high", "209715200\n");
  node.pass();
  CHECK(node.status().state.starts_with("off: "));
  node.tree.write("cgroup/lab/kubepods/memory.high", "max\n");
  CHECK(node.comes_true([&] { return node.level() == 824 * MiB; }));
}

TEST_CASE("it does not stand where its margin is as large as the threshold, and says so") {
  Node node;
  const auto read = os::now();
  node.tripwire->arm(arming_at(read, tripwire_margin(), 624 * MiB));
  CHECK_FALSE(node.level().has_value());
  CHECK(node.status().state == "waiting: a threshold is lower than what the kernel's counters may be off");
  node.tripwire->arm(arming_at(read + 1ms, 2 * tripwire_margin(), 624 * MiB));
  CHECK(node.level().has_value());
}

TEST_CASE("among the pods evictd sets nothing that would hold itself") {
  Node node{true};
  node.pass();
  node.reactor.run_for(50ms);
  CHECK_FALSE(node.level().has_value());
  CHECK(node.status().state == "off: evictd runs among the pods, and would be held as they are");
}

TEST_CASE("what a killed evictd left is known as its own, and lifted") {
  Node node;
  node.pass();
  REQUIRE(node.level().has_value());
  lift_old_fence(node.hierarchy, "/lab/kubepods", node.tree.path("fence"));
  CHECK_FALSE(node.level().has_value());
}

TEST_CASE("a pods' cgroup that goes and comes back has its tripwire again") {
  Node node;
  node.pass();
  node.tree.remove("cgroup/lab/kubepods");
  node.pass();
  CHECK(node.status().state == "waiting: no such cgroup");
  node.tree.add("cgroup/lab", dir("kubepods", pods_files()));
  node.pass();
  CHECK(node.level() == 824 * MiB);
}

TEST_CASE("after a self-test that failed it is registered anew") {
  Node node;
  node.pass();
  node.tripwire->rearm_all();
  node.pass();
  CHECK(node.status().re_registrations == 1);
  CHECK(node.level() == 824 * MiB);
}

TEST_SUITE("real cgroups") {
  TEST_CASE("the kernel tells once the pods go beyond it, holds them, and lets them go on when it is lifted") {
    SKIP_IF(fixture::no_real_cgroups());
    if (real_hierarchy().version() == node::CgroupVersion::v1) return;
    const fixture::Tree notes;
    constexpr auto patience = 30s;  // an emulated processor is slow
    const RealCgroup lab{own_cgroup("-tripwire")};
    const RealCgroup pods{lab.path() + "/kubepods"};
    const RealCgroup pod{pods.path() + "/pod"};
    lab.limit_memory(256 * MiB);
    config::NodeSettings settings;
    settings.cgroup_root = lab.path();
    settings.pods_cgroup = "kubepods";
    const auto hierarchy = real_hierarchy();
    auto memory = value_of(node::NodeMemory::open(hierarchy, settings));
    boost::asio::io_context reactor{1};
    Wakes wakes{reactor.get_executor()};
    Tripwire tripwire{reactor.get_executor(), wakes, hierarchy, memory,
                      Tripwire::Options{.note = notes.path("note"), .rule = {.longest_hold = 10min}}};
    const auto pass = [&](bool releasing = false) {
      const auto read = os::now();
      const auto reading = value_of(memory.read(read));
      const auto available = reading.observations[core::Signal::MemoryAvailable]->available;
      tripwire.arm(arming_at(read, 192 * MiB, available, releasing));
      return available;
    };
    const auto usage = [&] { return value_of(node::memory_usage(hierarchy, pods.path())); };
    const auto wait_until = [&](const auto& condition) {
      const auto end = os::now() + patience;
      while (!condition() && os::now() < end) {
        reactor.restart();
        reactor.run_for(10ms);
      }
      return condition();
    };

    pass();
    const auto level = tripwire.status().at(0).level;
    REQUIRE(level);
    CHECK(*level > 56 * MiB + tripwire_margin());  // the cgroups themselves take a little
    CHECK(*level < 66 * MiB + tripwire_margin());
    const Hog hog{96 * MiB};
    pod.put(hog.pid());
    hog.go();
    REQUIRE(wait_until([&] { return tripwire.status().at(0).wakes == 1; }));
    CHECK(pass() < 192 * MiB);
    CHECK(tripwire.status().at(0).state == "armed");
    CHECK(usage() < 96 * MiB);  // it is held

    pass(true);
    CHECK_FALSE(value_of(node::read_memory_high(value_of(hierarchy.memory(pods.path())))).has_value());
    CHECK(wait_until([&] { return usage() >= 96 * MiB; }));
    CHECK(tripwire.status().at(0).spurious == 0);
  }
}

}  // namespace evictd::wake::tripwire_test
