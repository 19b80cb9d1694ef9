#include "testbed/traced_calls.hpp"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "testbed/failure.hpp"
#include "testbed/wait.hpp"

namespace testbed {
namespace {

using namespace std::chrono_literals;

long ask(int request, pid_t thread, std::uintptr_t address, std::uintptr_t data) {
  return ::syscall(SYS_ptrace, request, thread, address, data);
}

/// The next stop of the thread: its signal, and in the bits above 8 the event of ptrace(2). 0 once the process has
/// ended, which its parent has to learn: only a stop is taken from it, also where it is killed while it is stopped.
int next_stop(pid_t process) {
  const auto id = static_cast<id_t>(process);
  siginfo_t next{};
  if (::waitid(P_PID, id, &next, WSTOPPED | WEXITED | WNOWAIT | __WALL) != 0) return 0;
  siginfo_t stop{};
  if (::waitid(P_PID, id, &stop, WSTOPPED | WNOHANG | __WALL) != 0) return 0;
  return stop.si_pid == process ? stop.si_status : 0;
}

std::string file_of(pid_t process, std::uint64_t descriptor) {
  std::error_code gone;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/fd/{}", process, descriptor), gone).native();
}

/// Counts what the thread executes outside of the kernel; empty where the machine cannot.
evictd::os::FileDescriptor count_instructions(pid_t thread) {
  perf_event_attr what{};
  what.size = sizeof what;
  what.type = PERF_TYPE_HARDWARE;
  what.config = PERF_COUNT_HW_INSTRUCTIONS;
  what.exclude_kernel = 1;
  what.exclude_hv = 1;
  return evictd::os::FileDescriptor{
      static_cast<int>(::syscall(SYS_perf_event_open, &what, thread, -1, -1, PERF_FLAG_FD_CLOEXEC))};
}

std::optional<std::uint64_t> read_count(const evictd::os::FileDescriptor& counter) {
  std::uint64_t count = 0;
  if (!counter || ::read(counter.get(), &count, sizeof count) != sizeof count) return std::nullopt;
  return count;
}

}  // namespace

TracedCalls::TracedCalls(pid_t process) : process_{process}, thread_{[this] { trace(); }} {
  const bool traced = comes_true(10s, [this] {
    const std::lock_guard lock{mutex_};
    return traced_;
  });
  if (traced) return;
  ::kill(process_, SIGKILL);
  thread_.join();
  fail(fmt::format("process {} cannot be traced", process_));
}

TracedCalls::~TracedCalls() {
  ::kill(process_, SIGKILL);
  thread_.join();
}

std::vector<TracedCall> TracedCalls::all() const {
  const std::lock_guard lock{mutex_};
  return calls_;
}

/// Only the thread that has begun to trace may go on with it.
void TracedCalls::trace() {
  instructions_ = count_instructions(process_);
  if (ask(PTRACE_SEIZE, process_, 0, PTRACE_O_TRACESYSGOOD) != 0) return;
  if (ask(PTRACE_INTERRUPT, process_, 0, 0) != 0) return;
  constexpr int of_system_call = SIGTRAP | 0x80;
  while (const int stop = next_stop(process_)) {
    const int signal = stop & 0xff;
    const bool is_event = stop >> 8 != 0;  // the interruption, or the end of a stop
    if (!step(signal == of_system_call ? signal : 0)) return;
    const bool is_its_own = signal != of_system_call && !is_event;
    if (ask(PTRACE_SYSCALL, process_, 0, static_cast<std::uintptr_t>(is_its_own ? signal : 0)) != 0) return;
  }
}

/// Takes note of the call that begins or ends with this stop.
bool TracedCalls::step(int signal) {
  const auto stopped = std::chrono::steady_clock::now();
  const std::lock_guard lock{mutex_};
  traced_ = true;
  if (signal == 0) return true;
  ptrace_syscall_info info{};
  if (ask(PTRACE_GET_SYSCALL_INFO, process_, sizeof info, reinterpret_cast<std::uintptr_t>(&info)) <= 0) return false;
  if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
    auto& call = calls_.emplace_back(
        TracedCall{.number = info.entry.nr, .begin = stopped, .instructions = read_count(instructions_)});
    if (call.number == SYS_read) call.file = file_of(process_, info.entry.args[0]);
  } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && !calls_.empty()) {
    calls_.back().result = info.exit.rval;
    calls_.back().end = std::chrono::steady_clock::now();
  }
  return true;
}

}  // namespace testbed
