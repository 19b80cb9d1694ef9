#include "node/app_armor.hpp"

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace evictd::node {
namespace {

namespace fs = std::filesystem;

bool is_enabled(const fs::path& root) {
  std::ifstream parameter{root / "sys/module/apparmor/parameters/enabled"};
  return parameter.get() == 'Y';
}

/// Where the first securityfs is mounted, from the root on.
std::optional<fs::path> securityfs(const fs::path& root) {
  std::ifstream mounts{root / "proc/mounts"};
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields{line};
    std::string device;
    std::string directory;
    std::string type;
    if (fields >> device >> directory >> type && type == "securityfs") return directory;
  }
  return std::nullopt;
}

std::string securityfs_error(const fs::path& root) {
  const auto mount = securityfs(root);
  if (!mount) return "securityfs not found";
  const auto directory = *mount / "apparmor";
  std::error_code ignored;
  if (fs::exists(root / directory.relative_path(), ignored)) return {};
  return "path " + directory.string() + " does not exist";
}

}  // namespace

admission::AppArmorSupport read_app_armor(const fs::path& root) {
  if (!is_enabled(root)) return {};
  const auto error = securityfs_error(root);
  return {.enabled = true, .error = error.empty() ? "" : "error finding AppArmor FS: " + error};
}

}  // namespace evictd::node
