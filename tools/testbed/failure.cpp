#include "testbed/failure.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>

namespace testbed {

void fail(const std::string& message) { throw Failure(message); }

void fail_errno(std::string_view what, int error) { fail(fmt::format("{}: {}", what, std::strerror(error))); }

void report_failure(const std::function<void()>& cleanup) noexcept {
  try {
    cleanup();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "testbed: %s\n", error.what());
  }
}

}  // namespace testbed
