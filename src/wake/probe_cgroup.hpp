#pragma once
#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "node/cgroup.hpp"
#include "os/directory.hpp"
#include "os/file_error.hpp"
#include "wake/memcg_event.hpp"
#include "wake/memory_counters_file.hpp"

namespace evictd::wake {

/// A cgroup of evictd's own, of which the kernel can be made to notify at will: outside of the pods' cgroup, so that
/// nobody takes it for a pod, and empty but for a moment. cgroup v1: a threshold on its usage, as those of
/// MemcgThreshold. v2, which has none: memory.high and the count of it in memory.events, as MemoryEvents reads it.
class ProbeCgroup {
 public:
  class Listener {
   public:
    /// The kernel told of a crossing, or for a last time that it dropped the registration. On the reactor.
    virtual void probe_crossed() = 0;

   protected:
    ~Listener() = default;
  };

  /// The listener must outlive this.
  ProbeCgroup(boost::asio::any_io_executor reactor, const node::CgroupHierarchy& hierarchy, std::string path,
              Listener& listener);
  ProbeCgroup(const ProbeCgroup&) = delete;
  ProbeCgroup& operator=(const ProbeCgroup&) = delete;
  /// Removes the cgroup.
  ~ProbeCgroup();

  /// Makes the cgroup where it is missing, an earlier evictd's will do, and registers with the kernel, anew if it was.
  [[nodiscard]] os::FileResult<void> open();
  /// Whether the registration is one of the cgroup that is there now.
  [[nodiscard]] bool is_open() const;

  /// Crosses the level: a child process takes 8 MiB in the cgroup, twice the level, and ends. By fork(2), since
  /// memory is charged to the cgroup of a whole process, and nothing has to be read from a disk for it. Not while
  /// another child runs.
  [[nodiscard]] Result<void> cross();
  enum class Child { None, Runs, Done, Failed };
  /// What became of the child; once it ended there is none. Never waits.
  [[nodiscard]] Child child();
  void kill_child() const;
  /// On v2 the kernel may hold the child, for going beyond memory.high. On v1 one that runs has not come so far.
  [[nodiscard]] bool may_be_held() const { return hierarchy_.version() == node::CgroupVersion::v2; }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] os::FileResult<os::Directory> make();
  [[nodiscard]] std::string directory() const { return hierarchy_.root().path() + path_; }

  const node::CgroupHierarchy& hierarchy_;
  std::string path_;
  Listener& listener_;
  MemcgEvent threshold_;         // v1
  MemoryCountersFile counters_;  // v2
  std::uint64_t inode_ = 0;      // of the cgroup that is registered with
  bool made_ = false;
  pid_t child_ = 0;
};

}  // namespace evictd::wake
