#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>

namespace testbed {

/// "evictd-test-NAMESPACE-PID-N": unlike every other name on this machine, and it says whose it is, by a number and the
/// PID namespace where that holds. Directories and cgroups of the testbed bear it, and those that unit tests make begin
/// like it, so that what a killed test left behind can be told from what a running one still needs.
[[nodiscard]] std::string unique_name();

/// What the names of such a process begin with: "evictd-test-NAMESPACE-PID-".
[[nodiscard]] std::string prefix_of(pid_t owner);

/// Whether a thing of this name was left behind: it begins so, of this PID namespace, and its owner is gone.
[[nodiscard]] bool is_leftover(std::string_view name);

/// Removes what a test that was killed could not: its directory with the processes and mounts in it, and its
/// cgroups. Those of a test whose process lives are left alone. What cannot be removed is reported on stderr. A new
/// Testbed begins with it.
void remove_leftovers();

}  // namespace testbed
