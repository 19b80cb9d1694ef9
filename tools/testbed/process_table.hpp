#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace testbed {

/// What a process carries in its environment to belong to the testbed in `directory`: "EVICTD_TESTBED=DIRECTORY".
/// Children inherit it, so that containerd's shims are found long after they and containerd have parted.
[[nodiscard]] std::string mark_of(const std::filesystem::path& directory);

/// The processes that carry the mark.
[[nodiscard]] std::vector<pid_t> marked_processes(const std::filesystem::path& directory);

/// These and their children, and their children's children: a shim's containers, which have an environment of their
/// own.
[[nodiscard]] std::vector<pid_t> with_descendants(std::vector<pid_t> processes);

/// Kills whom `list` names with SIGKILL, by pid, again and again until it names nobody: the killed may just have
/// forked. Returns when all of them are dead, which is a little after they lost what `list` knew them by. Fails after a
/// minute.
void kill_all(const std::function<std::vector<pid_t>()>& list);

}  // namespace testbed
