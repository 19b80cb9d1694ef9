#include "benchmarks/process_cost.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "testbed/files.hpp"

namespace bench {

namespace {

/// The number behind "NAME:" in a status file of /proc.
std::int64_t field(const std::string& status, const std::string& name) {
  const auto at = status.find("\n" + name + ":");
  if (at == std::string::npos) return 0;
  std::istringstream rest{status.substr(at + name.size() + 2)};
  std::int64_t value = 0;
  rest >> value;
  return value;
}

/// The thread's, which is the first line.
std::string name_in(const std::string& status) {
  constexpr std::string_view before = "Name:\t";
  return status.substr(before.size(), status.find('\n') - before.size());
}

}  // namespace

/// From the scheduler's own count of nanoseconds; utime and stime in /proc/PID/stat have only hundredths of a second. A
/// thread that ends takes its count with it, and evictd's threads stay.
ProcessCost cost_of(pid_t process) {
  ProcessCost cost;
  const auto directory = std::filesystem::path("/proc") / std::to_string(process);
  const auto memory = testbed::read_file(directory / "status");
  cost.resident_bytes = field(memory, "VmRSS") * 1024;
  cost.anonymous_bytes = field(memory, "RssAnon") * 1024;
  for (const auto& thread : std::filesystem::directory_iterator(directory / "task")) {
    const auto status = testbed::try_read_file(thread.path() / "status");
    const auto schedule = testbed::try_read_file(thread.path() / "schedstat");
    if (!status || !schedule) continue;
    const auto wakeups = field(*status, "voluntary_ctxt_switches");
    const std::chrono::nanoseconds cpu{std::atoll(schedule->c_str())};
    const bool is_reactor = thread.path().filename() == std::to_string(process);
    ++cost.threads;
    cost.wakeups += wakeups;
    cost.wakeups_of[is_reactor ? "reactor" : name_in(*status)] += wakeups;
    cost.cpu += cpu;
    if (!is_reactor) continue;
    cost.reactor_wakeups = wakeups;
    cost.reactor_cpu = cpu;
  }
  return cost;
}

}  // namespace bench
