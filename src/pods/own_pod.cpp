#include "pods/own_pod.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "pods/cgroup_name.hpp"

namespace evictd::pods {

std::string pod_of_process(std::string_view cgroup_file) {
  while (!cgroup_file.empty()) {
    const auto end = cgroup_file.find_first_of("/\n");
    if (const auto uid = uid_in_cgroup_name(cgroup_file.substr(0, end))) return *uid;
    if (end == std::string_view::npos) break;
    cgroup_file.remove_prefix(end + 1);
  }
  return {};
}

std::string own_pod_uid() {
  if (const auto* uid = std::getenv("POD_UID"); uid != nullptr && *uid != '\0') return uid;
  std::ifstream file("/proc/self/cgroup");
  return pod_of_process(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace evictd::pods
