#pragma once
#include "app/configuration.hpp"

namespace evictd::app {

/// Where the disk of `stateDirectory` does not read and write within 5 s, goes on without the
/// directory, and warns of it: a node's memory is guarded all the same. Then the history is in memory only, and what
/// pods were given is not known; so that nothing is given twice, admission gives no CPUs, no memory and no devices.
///
/// Before the reactor runs, and before anything reads the directory.
void leave_out_silent_state(Configuration& configuration);

}  // namespace evictd::app
