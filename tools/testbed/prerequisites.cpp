#include "testbed/prerequisites.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "testbed/cgroup_host.hpp"
#include "testbed/programs.hpp"

namespace testbed {

std::optional<std::string> missing_prerequisite() {
  if (::geteuid() != 0) return "not root";
  if (!find_cgroup_host()) return "no cgroup hierarchy has the memory controller, or none has the pids controller";
  for (const char* program : {"containerd", "ctr", "runc", "busybox", "tar"}) {
    if (!find_program(program)) return fmt::format("{} is not installed", program);
  }
  return std::nullopt;
}

}  // namespace testbed
