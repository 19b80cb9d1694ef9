#include "admission/quoted.hpp"

#include <doctest/doctest.h>

namespace evictd::admission::quoted_test {

TEST_CASE("text is quoted as Go does it") {
  CHECK(quoted("") == R"("")");
  CHECK(quoted("net.ipv4.*") == R"("net.ipv4.*")");
  CHECK(quoted("a\"b\\c") == R"("a\"b\\c")");
  CHECK(quoted("a\n\t\r\v\f\b\a") == R"("a\n\t\r\v\f\b\a")");
  CHECK(quoted(std::string_view("\0\x1f\x7f", 3)) == R"("\x00\x1f\x7f")");
  CHECK(quoted("Ünïcode") == "\"Ünïcode\"");
}

}  // namespace evictd::admission::quoted_test
