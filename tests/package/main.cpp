#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bare_root.hpp"
#include "deb.hpp"
#include "support/skip.hpp"

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  doctest::Context context(argc, argv);
  if (::geteuid() != 0) {
    fmt::print("skipped: all tests of the package: not root\n");
    return support::exit_code_skipped;
  }
  const int result = context.run();
  package::forget_bare_roots();
  package::forget_deb();
  return support::exit_code(result);
}
