#pragma once
#include <string>
#include <string_view>

namespace testbed {

/// "evictd-test-PID-N": unlike every other name on this machine, and it says whose it is. Directories and cgroups of
/// the testbed bear it, so that what a killed test left behind can be told from what a running one still needs.
[[nodiscard]] std::string unique_name();

/// Whether a thing of this name was left behind: it is the testbed's, and its owner is gone.
[[nodiscard]] bool is_leftover(std::string_view name);

/// Removes what a testbed that was killed could not: its directory with the processes and mounts in it, and its
/// cgroups. Those of a testbed whose process lives are left alone. What cannot be removed is reported on stderr. A new
/// Testbed begins with it.
void remove_leftovers();

}  // namespace testbed
