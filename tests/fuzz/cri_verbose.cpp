#include "pods/cgroup_name.hpp"
#include "pods/verbose_status.hpp"
#include "target.hpp"

// What a container runtime says of containers, sandboxes and itself beyond the API, and the cgroups it names in it.

namespace evictd::fuzz {
namespace {

void check_path(std::string_view path) {
  check(path.empty() || (path.starts_with('/') && (path.size() == 1 || !path.ends_with('/'))),
        "a cgroup's path is absolute and has no slash at its end");
}

void check_cgroups(const pods::SandboxInfo& sandbox) {
  constexpr std::string_view uid = "0b1e5d0c-4f8e-4d61-9a30-7f3f8f0f2a11";
  const auto cgroup = pods::pod_cgroup(sandbox.cgroup_parent, uid);
  if (!cgroup) return;
  check_path(cgroup->path);
  const auto name = std::string_view(cgroup->path).substr(cgroup->path.rfind('/') + 1);
  check(pods::uid_in_cgroup_name(name) == uid, "a pod's cgroup carries its uid");
}

}  // namespace

void run(std::string_view input) {
  if (const auto container = pods::parse_container_info(input); is_good(container))
    check_path(pods::container_cgroup(container->cgroups_path));
  if (const auto sandbox = pods::parse_sandbox_info(input); is_good(sandbox)) check_cgroups(*sandbox);
  (void)is_good(pods::parse_runtime_info(input));
}

}  // namespace evictd::fuzz
