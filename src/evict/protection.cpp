#include "evict/protection.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace evictd::evict {
namespace {

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
