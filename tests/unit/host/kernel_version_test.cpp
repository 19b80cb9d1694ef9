#include "host/kernel_version.hpp"

#include <doctest/doctest.h>

#include "admission/kernel_version.hpp"

namespace evictd::host::kernel_version_test {

TEST_CASE("the running kernel tells a version that sysctls can be judged by") {
  CHECK(admission::parse_kernel_version(kernel_version()).has_value());
}

}  // namespace evictd::host::kernel_version_test
