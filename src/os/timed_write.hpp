#pragma once
#include <string_view>

#include "core/duration.hpp"

namespace evictd::os {

/// Writes to a file whose writes may take long, such as those by which the kernel is asked to reclaim, and breaks off
/// after `patience`: by a signal of the real-time ones to this thread alone (a timer's, with a handler that does
/// nothing). 0, or errno; EINTR where it was broken off, and part of what the write does may be done then. Where the
/// kernel does not look for signals it takes as long as it takes, so this is not for the reactor's thread.
[[nodiscard]] int write_within(int descriptor, std::string_view text, core::Duration patience);

}  // namespace evictd::os
