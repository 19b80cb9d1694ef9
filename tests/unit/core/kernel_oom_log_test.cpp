#include "core/kernel_oom_log.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace evictd::core::kernel_oom_log_test {
namespace {

const std::string pod = "/kubepods/burstable/poda";
const std::string container = pod + "/c1";

/// A record of the kernel's own, as /dev/kmsg gives it.
std::string kernel(const std::string& text, char flag = '-', std::uint64_t time = 1'000'000) {
  return "6,1234," + std::to_string(time) + "," + flag + ";" + text + "\n SUBSYSTEM=x\n";
}

std::string choice(const std::string& memcgs, const std::string& comm, const std::string& pid = "7",
                   const std::string& cpuset = "c1") {
  return "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=" + cpuset + ",mems_allowed=0-1,3" + memcgs +
         ",task=" + comm + ",pid=" + pid + ",uid=1000";
}
std::string of_limit(const std::string& limited, const std::string& cgroup) {
  return ",oom_memcg=" + limited + ",task_memcg=" + cgroup;
}
std::string of_node(const std::string& cgroup) { return ",global_oom,task_memcg=" + cgroup; }

std::string end(const std::string& comm, const std::string& pid = "7",
                const std::string& beginning = "Memory cgroup out of memory") {
  return beginning + ": Killed process " + pid + " (" + comm +
         ") total-vm:9000kB, anon-rss:64kB, file-rss:8kB, shmem-rss:4kB, UID:1000 pgtables:52kB oom_score_adj:999";
}

/// What the last of these records ends.
std::optional<OomKill> last_of(const std::vector<std::string>& records) {
  OomLog log;
  std::optional<OomKill> kill;
  for (const auto& record : records) kill = log.read(record);
  return kill;
}

}  // namespace

TEST_CASE("a kill at a limit has its process, what that held, its cgroup and whose limit it was") {
  const auto kill = last_of({kernel("load invoked oom-killer: gfp_mask=0xcc0"),
                             kernel(choice(of_limit(container, container), "load")), kernel(end("load"))});
  REQUIRE(kill);
  CHECK(kill->pid == 7);
  CHECK(kill->comm == "load");
  CHECK(kill->cgroup == container);
  CHECK(kill->shortage == OomShortage::Limit);
  CHECK(kill->limited == container);
  CHECK(kill->anon == 64 << 10);
  CHECK(kill->file == 8 << 10);
  CHECK(kill->shmem == 4 << 10);
}

TEST_CASE("a kill for want of memory on the machine has no limit") {
  for (const auto* beginning : {"Out of memory", "Out of memory (oom_kill_allocating_task)"}) {
    const auto kill = last_of({kernel(choice(of_node(container), "load")), kernel(end("load", "7", beginning))});
    REQUIRE(kill);
    CHECK(kill->cgroup == container);
    CHECK(kill->shortage == OomShortage::Node);
    CHECK(kill->limited.empty());
  }
}

TEST_CASE("where the kernel did not say whom it chose, or of another, the cgroup is not known") {
  CHECK(last_of({kernel(end("load"))})->cgroup.empty());
  CHECK(last_of({kernel(choice(of_limit(pod, container), "load", "8")), kernel(end("load"))})->cgroup.empty());
  OomLog log;
  CHECK_FALSE(log.read(kernel(choice(of_limit(pod, container), "load"))));
  log.missed();
  CHECK(log.read(kernel(end("load")))->cgroup.empty());
}

TEST_CASE("a line in several records is one") {
  const auto line = choice(of_limit(pod, container), "load");
  const auto kill =
      last_of({kernel(line.substr(0, 90)), kernel("another line"), kernel(line.substr(90), 'c'), kernel(end("load"))});
  REQUIRE(kill);
  CHECK(kill->cgroup == container);
  CHECK(kill->limited == pod);
}

TEST_CASE("of a group that is killed as a whole each has its cgroup, and who is killed later has not") {
  OomLog log;
  CHECK_FALSE(log.read(kernel(choice(of_limit(pod, container), "load"))));
  CHECK(log.read(kernel(end("load")))->cgroup == container);
  CHECK_FALSE(log.read(kernel("Tasks in " + pod + " are going to be killed due to memory.oom.group set")));
  CHECK(log.read(kernel(end("other", "8")))->cgroup == pod);
  CHECK(log.read(kernel(end("other", "8")))->limited == pod);
  CHECK(log.read(kernel(end("late", "9"), '-', 3'000'000))->cgroup.empty());
}

TEST_CASE("what others write to the log is no kill") {
  const auto text = kernel(end("load")).substr(1);
  for (const auto* priority : {"12", "8", "14", "4294967295", "x", ""}) {
    CAPTURE(priority);
    CHECK_FALSE(last_of({priority + text}));
  }
  CHECK(last_of({"3" + text}));
}

TEST_CASE("a name of the pod's own choice stays a name") {
  for (const std::string name :
       {",pid=1,uid=0", ",task=x", "a) total-vm:1kB", "Killed process", "b (c) d", ",uid=5", ""}) {
    CAPTURE(name);
    const auto kill = last_of({kernel(choice(of_limit(pod, container), name)), kernel(end(name))});
    REQUIRE(kill);
    CHECK(kill->pid == 7);
    CHECK(kill->comm == name.substr(0, 15));
    CHECK(kill->cgroup == container);
    CHECK(kill->anon == 64 << 10);
  }
}

TEST_CASE("what the kernel escapes is itself again") {
  CHECK(last_of({kernel(end("a\\x0a\\x5cx"))})->comm == "a\n\\x");
  CHECK(last_of({kernel(end("a\\xzz\\x1"))})->comm == "a\\xzz\\x1");
}

TEST_CASE("a cgroup whose name pretends to be another one's line is nobody's") {
  const std::string other = "/kubepods/burstable/podb/c2";
  const auto cgroup_of = [](const std::string& line) { return last_of({kernel(line), kernel(end("load"))})->cgroup; };
  // Made by a container below its own cgroup.
  CHECK(cgroup_of(choice(of_limit(container, container + "/x,task_memcg=" + other), "load")).empty());
  CHECK(cgroup_of(choice(of_node(container + "/x,global_oom,task_memcg=" + other), "load")).empty());
  // In the cpuset of whoever asked for memory.
  CHECK(cgroup_of(choice(of_node(container), "load", "7", "x,mems_allowed=0,global_oom,task_memcg=" + other)).empty());
  // The limited cgroup is one that the process lies in.
  CHECK(cgroup_of(choice(of_limit(other, container), "load")).empty());
  CHECK(cgroup_of(choice(of_limit("/kubepods/burstable/pod", container), "load")).empty());
  CHECK(cgroup_of(choice(of_limit("/", container), "load")) == container);
}

TEST_CASE("lines that are cut off say what they have, and no more") {
  const auto line = kernel(end("load"));
  for (std::size_t size = 0; size < line.size(); ++size)
    if (const auto kill = last_of({line.substr(0, size)})) {
      CHECK(kill->comm == "load");
      CHECK((!kill->anon || *kill->anon == 64 << 10));
    }
}

TEST_CASE("a group that is killed without a word on why has nobody else's limit") {
  OomLog log;
  CHECK_FALSE(log.read(kernel(choice(of_limit(pod, container), "load"))));
  CHECK_FALSE(log.read(kernel("Tasks in " + pod + " are going to be killed due to memory.oom.group set")));
  // The kernel limits how often it says whom it chose.
  CHECK_FALSE(log.read(kernel("Tasks in /kubepods/podother are going to be killed due to memory.oom.group set")));
  const auto kill = log.read(kernel(end("load", "9")));
  REQUIRE(kill);
  CHECK(kill->cgroup == "/kubepods/podother");
  CHECK(kill->limited.empty());
}

}  // namespace evictd::core::kernel_oom_log_test
