#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bare_root.hpp"
#include "deb.hpp"
#include "skip.hpp"

namespace {

constexpr int exit_code_skipped = 77;  // as tools/test knows it
int skipped_tests = 0;

}  // namespace

namespace package {

void skipped(std::string_view why) {
  ++skipped_tests;
  fmt::print("skipped: {}: {}\n", doctest::getContextOptions()->currentTest->m_name, why);
}

}  // namespace package

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  doctest::Context context(argc, argv);
  if (::geteuid() != 0) {
    fmt::print("skipped: all tests of the package: not root\n");
    return exit_code_skipped;
  }
  const int result = context.run();
  package::forget_bare_roots();
  package::forget_deb();
  return result == 0 && skipped_tests > 0 ? exit_code_skipped : result;
}
