#include "host/node_lock.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/printable.hpp"
#include "os/log.hpp"

namespace evictd::host {
namespace {

/// What the holder wrote of itself, one line; empty while it has not done so yet.
std::string holder(int file) {
  std::array<char, 256> buffer{};
  const auto size = ::pread(file, buffer.data(), buffer.size(), 0);
  const std::string_view text{buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  return core::printable(text.substr(0, text.find('\n')));
}

std::string first_line(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

/// Whether the holder, by what it wrote of itself, is dead: a thread of it that waits in the kernel, for a disk that
/// hangs, keeps its files open, and nothing else of it runs. A pid of another namespace is not the holder's name here.
bool was_killed(const std::string& holder) {
  constexpr std::string_view before_pid = ", pid ";
  const auto place = holder.find(before_pid);
  if (place == std::string::npos) return false;
  const auto pid = holder.substr(place + before_pid.size(), holder.find(',', place + 1) - place - before_pid.size());
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string::npos) return false;
  const auto stat = first_line(fmt::format("/proc/{}/stat", pid));
  const auto dead = [&](char state) {
    return stat.starts_with(fmt::format("{} ({}) {} ", pid, first_line("/proc/self/comm"), state));
  };
  return dead('Z') || dead('X');
}

/// flock(2) for as long as a holder may need that is just ending. False: errno says why.
bool lock_while_it_ends(int file) {
  const auto end = std::chrono::steady_clock::now() + NodeLock::patience;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// The lock is what counts: a file system too full for a line is no reason to leave the node alone.
void say_who(int file, const std::string& version) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto line = fmt::format("evictd {}, pid {}, since {:%Y-%m-%dT%H:%M:%SZ}\n", version, ::getpid(),
                                fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, line.data(), line.size(), 0) < 0)
    os::log_warning("runtimeDirectory: its holder cannot be written: {}", std::generic_category().message(errno));
}

}  // namespace

NodeLock::Taken NodeLock::take(const std::filesystem::path& path, const std::string& version) {
  const auto unusable = [&](const std::string& what) {
    return Unusable{{fmt::format("runtimeDirectory: {}: {}; a second evictd on this node would not be noticed",
                                 path.native(), what)}};
  };
  const auto message = [](int code) { return std::generic_category().message(code); };
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) return unusable(error.message());
  // O_NONBLOCK for a pipe that may have been put there. Whoever can open the file can hold the lock, also for reading
  // alone (flock(2)), so nobody else may: one user's process would keep evictd from ever starting again.
  NodeLock lock{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)};
  if (lock.file_ < 0) return unusable(message(errno));
  struct stat found{};
  if (::fstat(lock.file_, &found) != 0 || !S_ISREG(found.st_mode)) return unusable("no regular file");
  if (::fchmod(lock.file_, 0600) != 0)  // earlier evictds made it for all to read
    os::log_warning("runtimeDirectory: {}: others may hold it: {}", path.native(), message(errno));
  if (!lock_while_it_ends(lock.file_)) {
    if (errno != EWOULDBLOCK) return unusable(message(errno));
    auto who = holder(lock.file_);
    if (was_killed(who))
      return unusable(fmt::format("its holder was killed, and a thread of it still waits, as for a disk ({})", who));
    if (who.empty()) who = "it does not say which";
    return Held{
        {fmt::format("runtimeDirectory: another evictd guards this node ({}) and holds {}: stop it first, or give "
                     "this one a directory of its own if it guards another node",
                     who, path.native())},
        who};
  }
  say_who(lock.file_, version);
  return lock;
}

NodeLock::~NodeLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace evictd::host
