#include "admission/go_quoted.hpp"

#include <doctest/doctest.h>

namespace evictd::admission::go_quoted_test {

TEST_CASE("text is quoted as Go does it") {
  CHECK(go_quoted("") == R"("")");
  CHECK(go_quoted("net.ipv4.*") == R"("net.ipv4.*")");
  CHECK(go_quoted("a\"b\\c") == R"("a\"b\\c")");
  CHECK(go_quoted("a\n\t\r\v\f\b\a") == R"("a\n\t\r\v\f\b\a")");
  CHECK(go_quoted(std::string_view("\0\x1f\x7f", 3)) == R"("\x00\x1f\x7f")");
  CHECK(go_quoted("Ünïcode") == "\"Ünïcode\"");
}

}  // namespace evictd::admission::go_quoted_test
