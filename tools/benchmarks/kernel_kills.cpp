#include "benchmarks/kernel_kills.hpp"

#include <sys/mman.h>

#include <cstddef>

#include "benchmarks/observer.hpp"
#include "os/numbers.hpp"
#include "testbed/cgroup_host.hpp"

namespace bench {

namespace fs = std::filesystem;

namespace {

std::int64_t read_count(const evictd::os::FileDescriptor& file) {
  return evictd::os::find_number(read_counter(file), "oom_kill").value_or(0);
}

}  // namespace

KernelKills::KernelKills(const fs::path& node) {
  const bool v2 = testbed::cgroup_host().v2;
  files_.push_back(open_counter(node, v2 ? "memory.events" : "memory.oom_control"));
  if (!v2)
    for (const auto& entry : fs::recursive_directory_iterator(node))
      if (entry.is_directory()) files_.push_back(open_counter(entry.path(), "memory.oom_control"));
  for (const auto& file : files_) before_.push_back(read_count(file));
}

bool KernelKills::look() {
  for (std::size_t i = 0; i < files_.size(); ++i) any_ = any_ || read_count(files_[i]) > before_[i];
  return any_;
}

void warm_memory(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) ::munmap(memory, size);
}

}  // namespace bench
