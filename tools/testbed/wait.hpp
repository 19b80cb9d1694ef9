#pragma once
#include <chrono>
#include <functional>
#include <string_view>

namespace testbed {

/// How long to wait here for what takes `time` at most on an ordinary machine: so many times as long as
/// EVICTD_TEST_PATIENCE says, a whole number, 1 if it is not set. tools/test sets it where programs run slowly. All the
/// testbed's deadlines are stretched so already, whoever gives them.
[[nodiscard]] std::chrono::milliseconds patient(std::chrono::milliseconds time);

/// Waits until `condition` holds, looking every few milliseconds. When it still does not hold after `deadline`, it
/// fails with a line that quotes `what`: wait_until("bloat is gone", 10s, …) says "after 10 s it is still not so: bloat
/// is gone".
void wait_until(std::string_view what, std::chrono::milliseconds deadline, const std::function<bool()>& condition);

/// The same for those who go on either way: whether it came to hold.
[[nodiscard]] bool comes_true(std::chrono::milliseconds deadline, const std::function<bool()>& condition);

}  // namespace testbed
