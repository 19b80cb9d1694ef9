#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "evict/tree_removal.hpp"
#include "os/file_error.hpp"

// The log files of the node's pods, and their removal: ROOT/NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log. Names come from
// pods, and pods may have a hand in these directories (tree_removal.hpp). All but locate_log() and
// uid_of_log_directory() block.
namespace evictd::evict {

/// A container's log.
struct LogFile {
  std::string directory;  ///< below the root: "NAMESPACE_NAME_UID/CONTAINER"
  std::string name;       ///< "ATTEMPT.log"

  friend bool operator==(const LogFile&, const LogFile&) = default;
};

/// The log of a container's attempt, by what the runtime says of it (CRI: ContainerStatus.log_path). Nothing unless it
/// lies beneath ROOT/`pod_directory`, in a directory of its own there, and is called ATTEMPT.log, as a kubelet calls it
/// (kubelet: BuildContainerLogsDirectory, containerLogFileName): a log of another name may be another container's, too.
[[nodiscard]] std::optional<LogFile> locate_log(const std::filesystem::path& root, std::string_view pod_directory,
                                                std::uint32_t attempt, std::string_view log_path);

/// Removes a log and what log rotation made of it (ATTEMPT.log.*, kubelet: containerLogManager.Clean). One that is gone
/// is no error.
[[nodiscard]] Removed remove_log(const std::filesystem::path& root, const LogFile& log);

/// The names of the directories in the root that can be those of a pod's logs, sorted. A root that does not exist has
/// none.
[[nodiscard]] os::FileResult<std::vector<std::string>> log_directories(const std::filesystem::path& root);

/// The uid in NAMESPACE_NAME_UID; empty: it is no such name. (kubelet: parsePodUIDFromLogsDirectory)
[[nodiscard]] std::string_view uid_of_log_directory(std::string_view name);

/// Removes a directory right in the root and all that is in it, for as long as there is time: what is left then waits
/// for the next call (ETIME). One that is gone is no error.
[[nodiscard]] Removed remove_log_directory(const std::filesystem::path& root, const std::string& name,
                                           core::Instant give_up);

}  // namespace evictd::evict
