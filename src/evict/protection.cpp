#include "evict/protection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/kept_file.hpp"

namespace evictd::evict {
namespace {

/// As /proc/PID/comm has them: cut off after 15 bytes, so that every containerd-shim-… reads the same. k3s and microk8s
/// have the kubelet within a program of another name.
constexpr std::array<std::string_view, 7> vital_names{"evictd",   "containerd", "containerd-shim", "kubelet",
                                                      "kubelite", "k3s-agent",  "k3s-server"};

/// One of our threads: signal 0 is sent to no one, but it finds only threads of the process that is named first.
bool is_ours(pid_t pid) {
  const auto self = ::getpid();
  return pid == self || ::syscall(SYS_tgkill, self, pid, 0) == 0;
}

/// The text; empty where it cannot be read, because the process has ended. Nothing where it has perhaps not ended.
template <std::size_t N>
std::optional<std::string_view> read_file(const std::string& path, std::array<char, N>& buffer) {
  const os::KeptFile file{os::FileDescriptor{::open(path.c_str(), O_RDONLY | O_CLOEXEC)}, path};
  if (file.descriptor() < 0) {
    if (errno != ENOENT && errno != ESRCH) return std::nullopt;
    return std::string_view{};
  }
  return file.read(buffer).value_or(std::string_view{});
}

std::string_view line_behind(std::string_view table, std::string_view key) {
  for (auto rest = table; !rest.empty();) {
    const auto line = rest.substr(0, rest.find('\n'));
    if (line.starts_with(key)) return line.substr(key.size());
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return {};
}

bool is_vital_name(std::string_view comm) {
  return std::ranges::find(vital_names, comm.substr(0, comm.find('\n'))) != vital_names.end();
}

/// "NSpid:\t8101\t1" are its ids in each namespace from that of `proc` inwards. Without the line, which every kernel
/// since 4.1 writes, it counts as the node's.
bool is_in_a_namespace_below(std::string_view status) {
  return line_behind(status, "NSpid:\t").find('\t') != std::string_view::npos;
}

constexpr std::size_t few = 512;             // 3 ms
constexpr std::size_t most_of_session = 32;  // more than a node has vital processes in one session beside their shims

struct Member {
  pid_t session;
  pid_t pid;
  auto operator<=>(const Member&) const = default;
};

/// The protected ones of one session.
void add_protected(std::span<const Member> session, const IsProtected& is_protected, std::vector<pid_t>& result) {
  const auto asked = std::min(session.size(), most_of_session);
  const auto ask = [&](std::span<const Member> members) {
    for (const auto& member : members)
      if (is_protected(member.pid)) result.push_back(member.pid);
  };
  const auto before = result.size();
  ask(session.first(asked));
  // -1 stands for processes that have ended, 0 for sessions of a pid namespace above ours: neither is one session.
  if (result.size() > before || session.front().session <= 0) ask(session.subspan(asked));
}

}  // namespace

bool is_protected(pid_t pid, const std::string& proc) {
  if (is_ours(pid)) return true;
  std::array<char, os::table_size> buffer;
  const auto comm = read_file(fmt::format("{}/{}/comm", proc, pid), buffer);
  if (!comm) return true;
  if (!is_vital_name(*comm)) return false;
  const auto status = read_file(fmt::format("{}/{}/status", proc, pid), buffer);
  if (!status) return true;
  return !status->empty() && !is_in_a_namespace_below(*status);
}

std::optional<Unprotected> Unprotected::look(pid_t pid, const IsProtected& is_protected, const std::string& proc) {
  const auto path = fmt::format("{}/{}/comm", proc, pid);
  os::FileDescriptor comm{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!comm || is_protected(pid)) return std::nullopt;
  Unprotected process{pid, {std::move(comm), path}};
  if (!process.is_still()) return std::nullopt;
  return process;
}

bool Unprotected::is_still() const {
  std::array<char, 64> buffer;
  const auto comm = comm_.read(buffer);
  return comm && !comm->empty() && !is_vital_name(*comm);
}

void remove_protected(std::vector<pid_t>& processes, const IsProtected& is_protected) {
  if (processes.size() <= few) {
    std::erase_if(processes, is_protected);
    return;
  }
  std::vector<Member> members;
  members.reserve(processes.size());
  for (const auto pid : processes) members.push_back({::getsid(pid), pid});
  std::ranges::sort(members);
  std::vector<pid_t> found;
  for (std::span<const Member> rest{members}; !rest.empty();) {
    const auto end = std::ranges::find_if(rest, [&](const auto& m) { return m.session != rest.front().session; });
    const auto size = static_cast<std::size_t>(end - rest.begin());
    add_protected(rest.first(size), is_protected, found);
    rest = rest.subspan(size);
  }
  std::ranges::sort(found);
  std::erase_if(processes, [&](pid_t pid) { return std::ranges::binary_search(found, pid); });
}

}  // namespace evictd::evict
