#pragma once
#include <string_view>

namespace support {

/// How a program ends of which something, or all, was skipped: Meson's, and automake's before it. tools/test knows it.
inline constexpr int exit_code_skipped = 77;

/// Says "skipped: TEST CASE: WHY" on a line of its own, and lets the whole run count as skipped unless something
/// failed.
void skipped(std::string_view why);

/// What the program ends with: doctest's `result`, or `exit_code_skipped` where nothing failed and something was
/// skipped.
[[nodiscard]] int exit_code(int result);

}  // namespace support

/// Ends a test case for which this machine lacks something: SKIP_UNLESS(exists("/dev/loop-control"), "no loop
/// devices"). One that has no meaning with the other version of cgroups is not skipped: it is left out without a word,
/// since this machine runs it, or the guest of tests/vm.
#define SKIP_UNLESS(condition, why) \
  do {                              \
    if (!(condition)) {             \
      ::support::skipped(why);      \
      return;                       \
    }                               \
  } while (false)

/// The same of a std::optional that says what is lacking, if anything: SKIP_IF(Logind::missing()).
#define SKIP_IF(obstacle)                       \
  do {                                          \
    if (const auto& skip_reason = (obstacle)) { \
      ::support::skipped(*skip_reason);         \
      return;                                   \
    }                                           \
  } while (false)
