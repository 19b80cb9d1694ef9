#pragma once
#include <set>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace evictd::admission {

/// Numbers of CPUs or NUMA nodes in the kernel's list format: "0-3,8". Blanks around the text are passed over, an empty
/// one is no number at all. None is above 65535. (kernel: Documentation/admin-guide/cputopology.rst, "cpu lists")
[[nodiscard]] Result<std::set<int>> parse_number_list(std::string_view text);

/// The same the other way, ascending and as short as it can be.
[[nodiscard]] std::string print_number_list(const std::set<int>& numbers);

}  // namespace evictd::admission
