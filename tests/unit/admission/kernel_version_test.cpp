#include "admission/kernel_version.hpp"

#include <doctest/doctest.h>

namespace evictd::admission::kernel_version_test {

TEST_CASE("a kernel's release begins with its version") {
  CHECK(parse_kernel_version("6.1.0-18-amd64") == KernelVersion{6, 1});
  CHECK(parse_kernel_version("4.15") == KernelVersion{4, 15});
  CHECK(parse_kernel_version(" v5.4.0\n") == KernelVersion{5, 4});
  CHECK(parse_kernel_version("5.10+") == KernelVersion{5, 10});
}

TEST_CASE("what begins with no version is none") {
  for (const auto* text : {"", " ", "6", "6.", "6.x", "x6.1", ".6", "-6.1", "6.-1", "99999999999.1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_kernel_version(text).has_value());
  }
}

TEST_CASE("versions compare by number, not by text") {
  CHECK(KernelVersion{4, 15} > KernelVersion{4, 5});
  CHECK(KernelVersion{5, 0} > KernelVersion{4, 15});
  CHECK(KernelVersion{3, 16} >= KernelVersion{3, 16});
}

}  // namespace evictd::admission::kernel_version_test
