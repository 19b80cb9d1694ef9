#pragma once
#include <string>
#include <string_view>

namespace testbed {

/// "evictd-test-PID-N": unlike every other name on this machine, and it says whose it is. Directories and cgroups of
/// the testbed bear it, so that what a killed test left behind can be told from what a running one still needs.
[[nodiscard]] std::string unique_name();

/// Whether a thing of this name was left behind: it is the testbed's, and its owner is gone.
[[nodiscard]] bool is_leftover(std::string_view name);

}  // namespace testbed
