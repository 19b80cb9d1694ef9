#include "agent/oom_groups.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/log.hpp"

namespace evictd::agent {
namespace {

constexpr auto group_file = "memory.oom.group";

bool wants_group(const core::Pod& pod) {
  const auto annotation = pod.annotations.find(oom_group_annotation);
  return annotation != pod.annotations.end() && annotation->second == "true";
}

void set_group(const node::CgroupHierarchy& hierarchy, const core::Pod& pod, std::string_view cgroup) {
  const auto directory = hierarchy.memory(cgroup);
  if (!directory) return;
  const auto file = directory->file(group_file);
  if (!file || file->read_number().value_or(1) != 0) return;
  const os::FileDescriptor opened{::openat(directory->descriptor(), group_file, O_WRONLY | O_TRUNC | O_CLOEXEC)};
  if (!opened || ::write(opened.get(), "1\n", 2) < 0)
    os::log_warning("{}: {}", pod.key(), os::system_error(errno, directory->path() + "/memory.oom.group").message);
}

}  // namespace

void OomGroups::pods_changed(const core::PodList& pods) {
  if (hierarchy_.version() != node::CgroupVersion::v2) return;
  for (const auto& pod : pods) {
    if (!wants_group(*pod) || !trusted_.contains(pod->name_space)) continue;
    // Of a pod without a cgroup to itself it would be that of others.
    if (const auto runs = pods_.find(pod->uid); runs && !runs->cgroup.empty())
      set_group(hierarchy_, *pod, runs->cgroup);
  }
}

}  // namespace evictd::agent
