#pragma once
#include <istream>
#include <string>

#include "core/error.hpp"

namespace evictd::ctl {

/// The whole of a file that was given by name, at most 1 MiB: the agent takes no larger one. `errno` must be what
/// opening it left there. The error is the reason alone: "No such file or directory".
[[nodiscard]] Result<std::string> read_input(std::istream& stream);

}  // namespace evictd::ctl
