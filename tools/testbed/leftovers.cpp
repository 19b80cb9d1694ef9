#include "testbed/leftovers.hpp"

#include <filesystem>
#include <set>
#include <string>

#include "testbed/cgroup_host.hpp"
#include "testbed/failure.hpp"
#include "testbed/names.hpp"
#include "testbed/work_directory.hpp"

namespace testbed {

namespace fs = std::filesystem;

void remove_leftovers() {
  for (const auto& entry : fs::directory_iterator(fs::canonical(fs::temp_directory_path()))) {
    if (is_leftover(entry.path().filename().native())) {
      report_failure([&] { remove_work_directory(entry.path()); });
    }
  }
  std::set<std::string> cgroups;
  for (const auto& hierarchy : cgroup_host().hierarchies) {
    for (const auto& entry : fs::directory_iterator(hierarchy)) {
      if (is_leftover(entry.path().filename().native())) cgroups.insert(entry.path().filename());
    }
  }
  for (const auto& name : cgroups) {
    report_failure([&] { remove_cgroups(name); });
  }
}

}  // namespace testbed
