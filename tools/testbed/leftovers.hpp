#pragma once

namespace testbed {

/// Removes what a testbed that was killed could not: its directory with the processes and mounts in it, and its
/// cgroups. Those of a testbed whose process lives are left alone. What cannot be removed is
/// reported on stderr. A new Testbed begins with it.
void remove_leftovers();

}  // namespace testbed
