#include "support/skip.hpp"

#include <doctest/doctest.h>

#include <cstdio>

namespace support {
namespace {

int skipped_tests = 0;

}  // namespace

void skipped(std::string_view why) {
  ++skipped_tests;
  std::printf("skipped: %s: %.*s\n", doctest::getContextOptions()->currentTest->m_name, static_cast<int>(why.size()),
              why.data());
}

int exit_code(int result) { return result == 0 && skipped_tests > 0 ? exit_code_skipped : result; }

}  // namespace support
