#include "core/idleness.hpp"

#include <doctest/doctest.h>

namespace evictd::core::idleness_test {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t MiB = 1 << 20;

Instant at(Duration time) { return Instant{1h + time}; }

}  // namespace

TEST_CASE("who neither works nor shrinks is idle after a while, and not before") {
  Idleness idleness;
  CHECK_FALSE(idleness.lasts(at(0s), 10ms, 100 * MiB));
  CHECK_FALSE(idleness.lasts(at(1900ms), 12ms, 100 * MiB));
  CHECK(idleness.lasts(at(2s), 12ms, 101 * MiB));
  CHECK(Idleness::why() == "for 2s it neither shrank nor did anything");
}

TEST_CASE("work, and memory that is given back, begin the while anew") {
  Idleness idleness;
  CHECK_FALSE(idleness.lasts(at(0s), 10ms, 100 * MiB));
  CHECK_FALSE(idleness.lasts(at(1500ms), 15ms, 100 * MiB));
  CHECK_FALSE(idleness.lasts(at(3s), 15ms, 99 * MiB));
  CHECK_FALSE(idleness.lasts(at(4900ms), 15ms, 99 * MiB));
  CHECK(idleness.lasts(at(5s), 15ms, 99 * MiB));
  idleness.reset();
  CHECK_FALSE(idleness.lasts(at(5s), 15ms, 99 * MiB));
}

TEST_CASE("whose processor time cannot be read is never idle") {
  Idleness idleness;
  CHECK_FALSE(idleness.lasts(at(0s), {}, 100 * MiB));
  CHECK_FALSE(idleness.lasts(at(10s), {}, 100 * MiB));
}

}  // namespace evictd::core::idleness_test
