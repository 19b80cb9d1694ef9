#pragma once
#include <string>

namespace evictd::host {

/// The release of the running kernel, "6.1.0-18-amd64"; "" where it is not told. (uname)
[[nodiscard]] std::string kernel_version();

}  // namespace evictd::host
