#include "config/document_progress.hpp"

#include <doctest/doctest.h>
#include <yaml-cpp/exceptions.h>

namespace evictd::config::document_progress_test {

TEST_CASE("documents that go on are left alone, whatever is in them") {
  for (const auto* text :
       {"", "a", "a: [1, 2]", "{a: b, c: d}", "---\n---\n", "a: b, c", "\"a, b\"\n--- c\n...\n--- {d: ,}\n"}) {
    CAPTURE(text);
    CHECK_NOTHROW(check_progress(text));
  }
}

TEST_CASE("a comma that nothing takes is found") {
  for (const auto* text : {",", ", a", "\"a\", b", "{a: b}, c", "--- [a]\n,"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(check_progress(text), YAML::ParserException);
  }
}

}  // namespace evictd::config::document_progress_test
