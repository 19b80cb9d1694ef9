#pragma once
#include <string_view>

namespace package {

/// Says "skipped: TEST CASE: WHY" on a line of its own, and lets the whole run count as skipped unless something
/// failed.
void skipped(std::string_view why);

}  // namespace package
