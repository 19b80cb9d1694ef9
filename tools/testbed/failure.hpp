#pragma once
#include <cerrno>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace testbed {

/// What the testbed throws: one line that says what was wanted and what came instead. A test whose node cannot be set
/// up has nothing left to check, so it ends there, and the destructors take down what stands.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& message);

/// "WHAT: " and the system's text for errno, or for `error` where a call returns it.
[[noreturn]] void fail_errno(std::string_view what, int error = errno);

/// For destructors: runs it, and prints the failure to stderr instead of throwing it.
void report_failure(const std::function<void()>& cleanup) noexcept;

}  // namespace testbed
