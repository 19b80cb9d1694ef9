#include "benchmarks/process_cost.hpp"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <sstream>
#include <string>

#include "testbed/failure.hpp"
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

}  // namespace

/// The kernel's clock of the process counts nanoseconds; utime and stime in /proc/PID/stat only hundredths of a second.
ProcessCost cost_of(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (const int error = ::clock_getcpuclockid(process, &clock); error != 0) testbed::fail_errno("its clock", error);
  if (::clock_gettime(clock, &used) != 0) testbed::fail_errno("its clock");
  ProcessCost cost{.cpu = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec)};
  const auto directory = std::filesystem::path("/proc") / std::to_string(process);
  cost.resident_bytes = field(testbed::read_file(directory / "status"), "VmRSS") * 1024;
  for (const auto& thread : std::filesystem::directory_iterator(directory / "task"))
    if (const auto status = testbed::try_read_file(thread.path() / "status"))
      cost.wakeups += field(*status, "voluntary_ctxt_switches");
  return cost;
}

}  // namespace bench
