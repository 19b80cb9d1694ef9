#include "wake/probe_cgroup.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "node/memory_high.hpp"
#include "os/directory.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "wake/memory_counters.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

/// The kernel checks thresholds every 128 pages that a CPU charges or gives back, and each CPU keeps up to 64 pages of
/// what was given back charged for the next one. So after a child's end the usage may seem to be some MiB yet: a level
/// below that would be crossed once and never again.
constexpr std::size_t level = 4 << 20;
constexpr std::size_t taken = 2 * level;

/// Where evictd runs: it does not stay there with a rest of this cgroup's pages for long.
void stay_on_this_cpu() {
  unsigned int cpu = 0;
  if (::syscall(SYS_getcpu, &cpu, nullptr, nullptr) != 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  ::sched_setaffinity(0, sizeof cpus, &cpus);
}

/// In the child, which is a copy of one thread of many: nothing but system calls.
[[noreturn]] void take_memory(int processes) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  stay_on_this_cpu();
  if (::write(processes, "0", 1) != 1) ::_exit(1);  // 0: the process that writes
  void* const memory = ::mmap(nullptr, taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(1);
  ::madvise(memory, taken, MADV_NOHUGEPAGE);
  auto* const bytes = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < taken; at += 4096) bytes[at] = 1;
  ::_exit(0);
}

}  // namespace

ProbeCgroup::ProbeCgroup(asio::any_io_executor reactor, const node::CgroupHierarchy& hierarchy, std::string path,
                         Listener& listener)
    : hierarchy_{hierarchy},
      path_{std::move(path)},
      listener_{listener},
      threshold_{reactor},
      counters_{reactor, [this](const MemoryCounters& before, const MemoryCounters& now) {
                  if (now.high > before.high) listener_.probe_crossed();
                }} {}

ProbeCgroup::~ProbeCgroup() {
  kill_child();
  if (child_ > 0) ::waitpid(child_, nullptr, 0);
  if (made_) ::rmdir(directory().c_str());
}

os::FileResult<os::Directory> ProbeCgroup::make() {
  if (::mkdir(directory().c_str(), 0755) != 0 && errno != EEXIST) {
    const int code = errno;
    if (code != EACCES && code != EPERM && code != EROFS) return std::unexpected(os::system_error(code, directory()));
    return std::unexpected(os::FileError{
        Error{
            fmt::format("{}: {}; evictd may make no cgroup there, and none is delegated to it (Delegate= in its unit)",
                        directory(), os::reason(code))},
        code});
  }
  made_ = true;
  return hierarchy_.memory(path_);
}

os::FileResult<void> ProbeCgroup::open() {
  const auto cgroup = make();
  if (!cgroup) return std::unexpected(cgroup.error());
  if (hierarchy_.version() == node::CgroupVersion::v1) {
    auto opened =
        threshold_.open(*cgroup, "memory.usage_in_bytes", std::to_string(level), [this] { listener_.probe_crossed(); });
    if (!opened) return opened;
  } else {
    counters_.close();
    if (auto set = node::write_memory_high(*cgroup, static_cast<std::int64_t>(level)); !set) return set;
    if (const auto opened = counters_.keep_open(*cgroup, "memory.events"); !opened)
      return std::unexpected(opened.error());
  }
  inode_ = cgroup->inode();
  return {};
}

bool ProbeCgroup::is_open() const {
  if (!threshold_.is_open() && !counters_.counters()) return false;
  const auto cgroup = hierarchy_.memory(path_);
  return cgroup && cgroup->inode() == inode_;
}

Result<void> ProbeCgroup::cross() {
  const auto file = directory() + "/cgroup.procs";
  const os::FileDescriptor processes{::open(file.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!processes) return std::unexpected(os::system_error(errno, file));
  // Not fork(3), which runs the handlers of libraries that have threads of their own.
  child_ = ::_Fork();
  if (child_ == 0) take_memory(processes.get());
  if (child_ < 0) return std::unexpected(os::system_error(errno, "fork"));
  return {};
}

ProbeCgroup::Child ProbeCgroup::child() {
  if (child_ <= 0) return Child::None;
  int status = 0;
  const auto ended = ::waitpid(child_, &status, WNOHANG);
  if (ended == 0) return Child::Runs;
  child_ = 0;
  return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Child::Done : Child::Failed;
}

void ProbeCgroup::kill_child() const {
  if (child_ > 0) ::kill(child_, SIGKILL);
}

}  // namespace evictd::wake
