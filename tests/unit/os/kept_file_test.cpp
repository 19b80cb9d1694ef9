#include "os/kept_file.hpp"

#include <doctest/doctest.h>

#include <array>

#include "fixture/result.hpp"
#include "fixture/tree.hpp"
#include "os/directory.hpp"

namespace evictd::os::kept_file_test {
namespace {

using fixture::error_of;
using fixture::file;
using fixture::Tree;
using fixture::value_of;

KeptFile kept(const Tree& tree) { return value_of(value_of(Directory::open(tree.path())).file("n")); }

}  // namespace

TEST_CASE("a kept file is read anew each time") {
  const Tree tree{file("n", "1\n")};
  const auto number = kept(tree);
  CHECK(value_of(number.read_number()) == 1);
  CHECK(value_of(number.read_number()) == 1);
  tree.write("n", "22\n");
  CHECK(value_of(number.read_number()) == 22);
}

TEST_CASE("garbage in place of a number is shown") {
  const Tree tree{file("n", "abc\ndef\n")};
  const auto number = kept(tree);
  CHECK(error_of(number.read_number()) == number.path() + ": \"abc\" is not a number");
  CHECK_FALSE(number.read_number().error().is_gone());
  tree.write("n", "");
  CHECK(error_of(number.read_number()) == number.path() + ": \"\" is not a number");
}

TEST_CASE("a file that does not fit is refused, not cut") {
  const Tree tree{file("n", "12345678")};
  std::array<char, 8> buffer;
  CHECK(error_of(kept(tree).read(buffer)) == tree.path("n").native() + ": File too large");
  std::array<char, 9> larger;
  CHECK(value_of(kept(tree).read(larger)) == "12345678");
}

}  // namespace evictd::os::kept_file_test
