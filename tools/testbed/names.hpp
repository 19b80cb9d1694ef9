#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace testbed {

/// "evictd-test-PID-N": unlike every other name on this machine, and it says whose it is. Directories and cgroups of
/// the testbed bear it, so that what a killed test left behind can be told from what a running one still needs.
[[nodiscard]] std::string unique_name();

/// The process that made the name; nothing for a name that is not the testbed's.
[[nodiscard]] std::optional<pid_t> owner_of(std::string_view name);

/// Whether a thing of this name was left behind: it is the testbed's, and its owner is gone.
[[nodiscard]] bool is_leftover(std::string_view name);

}  // namespace testbed
