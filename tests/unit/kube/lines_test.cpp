#include "kube/lines.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "fixture/result.hpp"

namespace evictd::kube::lines_test {

namespace kube = evictd::kube;
using evictd::fixture::error_of;
using evictd::fixture::value_of;

TEST_CASE("lines come out whole, however the bytes come in") {
  const std::string text = "one\r\n\ntwo\nthree\n\r\nfo";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    kube::Lines lines{100};
    std::vector<std::string> found;
    for (std::size_t begin = 0; begin < text.size(); begin += size) {
      lines.add(text.substr(begin, size));
      while (auto line = value_of(lines.next())) found.push_back(*line);
    }
    CHECK(found == std::vector<std::string>{"one", "two", "three"});
    CHECK(lines.has_rest());
    lines.add("ur\n");
    CHECK(value_of(lines.next()) == "four");
    CHECK(value_of(lines.next()) == std::nullopt);
    CHECK_FALSE(lines.has_rest());
  }
}

TEST_CASE("a line may be as long as it may be, and not a byte longer") {
  kube::Lines lines{4};
  lines.add("1234\n12345\n");
  CHECK(value_of(lines.next()) == "1234");
  CHECK(error_of(lines.next()) == "a line is longer than 0 KiB");

  kube::Lines endless{4};
  endless.add("12345");
  CHECK_FALSE(endless.next().has_value());
}

}  // namespace evictd::kube::lines_test
