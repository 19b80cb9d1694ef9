#include "evictctl/paint.hpp"

#include <doctest/doctest.h>

namespace evictd::ctl::paint_test {
namespace {

TEST_CASE("a paint that is off leaves texts as they are") {
  const Paint off;
  CHECK(off(Style::Bad, "x") == "x");
  const Paint on{true};
  CHECK(on(Style::Plain, "x") == "x");
  CHECK(on(Style::Bad, "") == "");
  CHECK(on(Style::Bad, "x") == "\x1b[1;31mx\x1b[0m");
  CHECK(on(Style::Warning, "x") == "\x1b[33mx\x1b[0m");
}

}  // namespace
}  // namespace evictd::ctl::paint_test
