#include "traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>
#include <utility>

#include "testbed/files.hpp"

namespace integration {

namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) { return testbed::try_read_file(file).value_or(""); }

}  // namespace

Traces::Traces(fs::path directory, std::string cgroup) : directory_(std::move(directory)), cgroup_(std::move(cgroup)) {
  constexpr std::string_view scheme = "unix://";
  for (const auto& bundle :
       fs::directory_iterator(directory_ / "containerd-state/io.containerd.runtime.v2.task/k8s.io")) {
    const auto address = text_of(bundle.path() / "address");
    if (address.starts_with(scheme)) shim_sockets_.insert(address.substr(scheme.size()));
  }
}

std::set<std::string> Traces::found() const {
  std::set<std::string> result;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().native().front())) == 0) continue;
    if (text_of(entry.path() / "status").find("State:\tZ") != std::string::npos) continue;
    const bool in_cgroup = text_of(entry.path() / "cgroup").find(cgroup_) != std::string::npos;
    const bool of_containerd = text_of(entry.path() / "cmdline").find(directory_) != std::string::npos;
    if (in_cgroup || of_containerd) result.insert(fmt::format("process {}", entry.path().filename().native()));
  }

  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, target, type, rest; mounts >> device >> target >> type && std::getline(mounts, rest);) {
    if (target.starts_with(directory_.native())) result.insert("mount " + target);
    if (type.starts_with("cgroup") && fs::exists(target + cgroup_)) result.insert("cgroup " + target + cgroup_);
  }

  if (fs::exists(directory_)) result.insert("directory " + directory_.native());
  for (const auto& socket : shim_sockets_) {
    if (fs::exists(socket)) result.insert("socket " + socket);
  }
  return result;
}

}  // namespace integration
