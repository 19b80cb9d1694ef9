#include "metrics/process_families.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "metrics/families.hpp"

namespace evictd::metrics {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::vector<prometheus::MetricFamily> ProcessFamilies::Collect() const {
  Families families;
  families.counter("evictd_process_cpu_seconds_total", "Processor time that evictd used, user and system.",
                   cpu_seconds());
  std::int64_t pages = 0;
  std::int64_t resident_pages = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident_pages)
    families.gauge("evictd_process_resident_memory_bytes", "Memory that evictd holds.",
                   static_cast<double>(resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  std::error_code error;
  if (std::filesystem::directory_iterator open("/proc/self/fd", error); !error)
    // The one that reads the directory is among them.
    families.gauge("evictd_process_open_fds", "Descriptors that evictd has open.",
                   static_cast<double>(std::distance(begin(open), end(open)) - 1));
  if (rlimit limit{}; ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    families.gauge("evictd_process_max_fds", "Descriptors that evictd may have open.",
                   static_cast<double>(limit.rlim_cur));
  return families.take();
}

}  // namespace evictd::metrics
