#pragma once
#include "core/error.hpp"

namespace evictd::os {

// Exit codes: 0 done, 1 failed while running, 2 wrong usage or configuration. An error is one line on stderr.

/// Log the error, behind what was logged before it, and return the exit code: 2 and 1.
[[nodiscard]] int wrong_usage(const Error& error);
[[nodiscard]] int failed(const Error& error);

}  // namespace evictd::os
