#pragma once
#include <fmt/format.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <vector>

#include "testbed/cgroup_host.hpp"
#include "testbed/files.hpp"
#include "testbed/leftovers.hpp"

namespace integration {

/// What bears the name of a testbed of this process, wherever testbeds leave things.
inline std::vector<std::filesystem::path> things_of(pid_t owner) {
  namespace fs = std::filesystem;
  auto directories = testbed::cgroup_host().hierarchies;
  directories.push_back(fs::temp_directory_path());
  std::vector<fs::path> found;
  for (const auto& directory : directories)
    for (const auto& entry : fs::directory_iterator(directory))
      if (entry.path().filename().native().starts_with(testbed::prefix_of(owner))) found.push_back(entry.path());
  return found;
}

inline std::optional<pid_t> child_of(pid_t parent) {
  std::istringstream children{testbed::read_file(fmt::format("/proc/{0}/task/{0}/children", parent))};
  pid_t child = 0;
  return children >> child ? std::optional(child) : std::nullopt;
}

}  // namespace integration
