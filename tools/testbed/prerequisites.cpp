#include "testbed/prerequisites.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "testbed/cgroup_host.hpp"
#include "testbed/programs.hpp"

namespace testbed {

std::optional<std::string> missing_prerequisite() {
  if (::geteuid() != 0) return "not root";
  if (!find_cgroup_host()) return "no cgroup hierarchy has the memory controller, or none has the pids controller";
  for (const auto& program : {std::string("containerd"), std::string("containerd-shim-runc-v2"), std::string("ctr"),
                              oci_runtime().string(), std::string("busybox"), std::string("tar")}) {
    if (!find_program(program)) return fmt::format("{} is not installed", program);
  }
  return std::nullopt;
}

}  // namespace testbed
