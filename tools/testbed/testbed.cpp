#include "testbed/testbed.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "testbed/cgroup_host.hpp"
#include "testbed/programs.hpp"

namespace testbed {

Testbed::Testbed(const Options& options)
    : node_(options.node), containerd_(options.containerd), cri_(containerd_.socket(), node_) {
  if (options.start_containerd) containerd_.start();
}

std::optional<std::string> missing_prerequisite() {
  if (::geteuid() != 0) return "not root";
  if (!find_cgroup_host()) return "no cgroup hierarchy has the memory controller, or none has the pids controller";
  for (const std::string& program : std::initializer_list<std::string>{"containerd", "containerd-shim-runc-v2", "ctr",
                                                                       oci_runtime(), "busybox", "tar"})
    if (!find_program(program)) return fmt::format("{} is not installed", program);
  return std::nullopt;
}

}  // namespace testbed
