#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace evictd::kubelet {

/// What systemd starts a service with.
struct UnitCommand {
  std::vector<std::string> arguments;  ///< behind the program's name
  using Variables = std::map<std::string, std::string, std::less<>>;
  Variables variables;  ///< those of its environment that begin with "K3S_" (Environment=, EnvironmentFile=)
  std::vector<std::filesystem::path> files;  ///< the unit's own, its drop-ins, and those of its environment
};

/// The last ExecStart= of a service's files, read as systemd.unit(5) and systemd.service(5) say. For programs that hide
/// their own command line. Absent: there is no such unit, or its command or these variables hold what systemd
/// alone knows, such as a variable. Waits for the disk.
[[nodiscard]] std::optional<UnitCommand> command_of(const std::string& unit, const std::filesystem::path& root);

}  // namespace evictd::kubelet
