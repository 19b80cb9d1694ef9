#pragma once
#include <ostream>

namespace evictd::ctl {

/// All of evictctl. Returns the exit code: 0 done, 1 failed, 2 wrong usage; errors are one line on `err`.
[[nodiscard]] int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace evictd::ctl
