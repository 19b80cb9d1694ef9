#pragma once
#include <string_view>

namespace integration {

/// Says "skipped: TEST CASE: WHY" on a line of its own, and lets the whole run count as skipped unless something
/// failed.
void skipped(std::string_view why);

}  // namespace integration

/// Ends a test case for which this machine lacks something: SKIP_UNLESS(exists("/dev/loop-control"), "no loop
/// devices"). One that has no meaning with the other version of cgroups is in the suite "cgroup v1" or "cgroup v2", of
/// which only this machine's is run; and one that takes containerd 1.7 or later is in "runtime events", one that
/// takes 2.1 in "image volumes".
#define SKIP_UNLESS(condition, why) \
  do {                              \
    if (!(condition)) {             \
      ::integration::skipped(why);  \
      return;                       \
    }                               \
  } while (false)
