#include "core/kernel_oom_log.hpp"

#include "target.hpp"

// The kernel's log, whose names are pods': records one after the other, a zero byte between them.

namespace evictd::fuzz {

void run(std::string_view input) {
  core::OomLog log;
  while (!input.empty()) {
    const auto record = input.substr(0, input.find('\0'));
    input.remove_prefix(record.size() == input.size() ? record.size() : record.size() + 1);
    const auto kill = log.read(record);
    if (!kill) continue;
    check(record.front() >= '0' && record.front() <= '7', "it is the kernel's");
    check(kill->pid >= 0, "a pid is not negative");
    check(kill->comm.size() <= 15, "a name is no longer than the kernel's");
    check(!kill->anon || *kill->anon >= 0, "sizes are not negative");
    check(kill->limited.empty() || kill->shortage == core::OomShortage::Limit, "only a limit is somebody's");
  }
}

}  // namespace evictd::fuzz
