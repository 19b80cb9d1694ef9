#include "evictctl/text.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>

namespace evictd::ctl::text_test {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

TEST_CASE("text is cut by characters, not bytes") {
  CHECK(columns("Größe") == 5);
  CHECK(shortened("Größe", 5) == "Größe");
  CHECK(shortened("Größer", 5) == "Größ…");
  CHECK(shortened("abc", 1) == "…");
  CHECK(shortened("abc", 0) == "");
}

TEST_CASE("text is wrapped at blanks, and within a word only where it must be") {
  CHECK(wrapped("", 5) == Lines{""});
  CHECK(wrapped("one two", 7) == Lines{"one two"});
  CHECK(wrapped("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrapped("one two three", 8) == Lines{"one two", "three"});
  CHECK(wrapped("abcdefgh ij", 3) == Lines{"abc", "def", "gh", "ij"});
  CHECK(wrapped("größen", 3) == Lines{"grö", "ßen"});
  CHECK(wrapped(" ab", 2) == Lines{" a", "b"});
}

TEST_CASE("amounts of memory have three digits and a suffix, others are numbers") {
  CHECK(bytes_text(0) == "0");
  CHECK(bytes_text(1023) == "1023");
  CHECK(bytes_text(1024) == "1Ki");
  CHECK(bytes_text(1536) == "1.5Ki");
  CHECK(bytes_text(96780288) == "92.3Mi");
  CHECK(bytes_text(std::int64_t{1} << 30) == "1Gi");
  CHECK(bytes_text((std::int64_t{1} << 30) - 1) == "1Gi");
  CHECK(bytes_text(-(std::int64_t{3} << 20)) == "-3Mi");
  CHECK(bytes_text(std::numeric_limits<std::int64_t>::max()) == "8Ei");
  CHECK(amount_text("bytes", 2048) == "2Ki");
  CHECK(amount_text("inodes", 2048) == "2048");
  CHECK(amount_text("pids", -3) == "-3");
}

TEST_CASE("durations have their two leading units") {
  CHECK(duration_text(-1s) == "0s");
  CHECK(duration_text(999us) == "0s");
  CHECK(duration_text(350ms) == "350ms");
  CHECK(duration_text(12s + 900ms) == "12s");
  CHECK(duration_text(130s) == "2m10s");
  CHECK(duration_text(120s) == "2m");
  CHECK(duration_text(1h + 5min + 30s) == "1h5m");
  CHECK(duration_text(51h) == "2d3h");
}

TEST_CASE("latencies have three digits, in the unit that suits them") {
  CHECK(latency_text(0us) == "0us");
  CHECK(latency_text(999us) == "999us");
  CHECK(latency_text(1ms) == "1ms");
  CHECK(latency_text(1459us) == "1.46ms");
  CHECK(latency_text(54'120us) == "54.1ms");
  CHECK(latency_text(999'700us) == "1s");
  CHECK(latency_text(60s) == "60s");
}

TEST_CASE("times are the local ones, to the millisecond") {
  ::setenv("TZ", "UTC-2", 1);  // two hours east
  ::tzset();
  google::protobuf::Timestamp time;
  time.set_seconds(1795257067);  // 2026-11-21 10:31:07 UTC
  time.set_nanos(123999999);
  CHECK(day_text(to_time_point(time)) == "2026-11-21");
  CHECK(time_text(to_time_point(time)) == "12:31:07.123");
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace
}  // namespace evictd::ctl::text_test
