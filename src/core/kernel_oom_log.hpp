#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace evictd::core {

/// What was short when the kernel's OOM killer killed.
enum class OomShortage : std::uint8_t {
  Unknown,
  Limit,  ///< a cgroup's limit: `limited` says whose
  Node,   ///< the machine's memory
};

/// One process that the kernel's OOM killer killed, as its log tells.
struct OomKill {
  std::int64_t pid = 0;
  std::string comm{};    ///< any bytes: whoever ran it chose them
  std::string cgroup{};  ///< the process's memory cgroup, from the root of the machine's on; empty: not said
  OomShortage shortage = OomShortage::Unknown;
  std::string limited{};               ///< the cgroup whose limit was met; empty: none, or not said
  std::optional<std::int64_t> anon{};  ///< bytes
  std::optional<std::int64_t> file{};
  std::optional<std::int64_t> shmem{};

  friend bool operator==(const OomKill&, const OomKill&) = default;
};

/// Finds kills in the records of /dev/kmsg, read one after the other. The kernel writes up to three lines for a kill,
/// in this order, and those of two kills never mix, since it holds a lock meanwhile (mm/oom_kill.c, mm/memcontrol.c):
///
///     oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=C,mems_allowed=0,oom_memcg=M,task_memcg=T,
///       task=COMM,pid=7,uid=0                                 (at most 10 in 5 s; in place of oom_memcg: global_oom)
///     Memory cgroup out of memory: Killed process 7 (COMM) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, …
///     Tasks in T are going to be killed due to memory.oom.group set                             (and then each of
///     them)
///
/// Only records of the kernel's own count: whoever may write to /dev/kmsg cannot have its facility. COMM, and the names
/// of cgroups that a container made itself, are any bytes: a line that can be read in two ways names no cgroup. Pure.
class OomLog {
 public:
  /// Takes the next record, "PRIORITY,SEQUENCE,MICROSECONDS,FLAG;TEXT" and what follows; a kill if it ends one.
  [[nodiscard]] std::optional<OomKill> read(std::string_view record);
  /// Records were missed: what was begun is not gone on with.
  void missed() { *this = {}; }

 private:
  struct Context {
    std::int64_t pid = 0;
    std::string cgroup;
    OomShortage shortage = OomShortage::Unknown;
    std::string limited;
  };

  void read_choice(std::string_view line);
  [[nodiscard]] std::optional<OomKill> read_kill(std::string_view line, std::uint64_t time);

  std::string unfinished_;         // a line that the kernel may go on with in the next record
  std::optional<Context> choice_;  // of the last "oom-kill:"
  std::optional<Context> group_;   // of the last "Tasks in"
  OomShortage last_shortage_ = OomShortage::Unknown;
  std::string last_limited_;
  std::uint64_t group_time_ = 0;  // microseconds
};

}  // namespace evictd::core
