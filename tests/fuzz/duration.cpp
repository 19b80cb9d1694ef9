#include "core/duration.hpp"

#include "target.hpp"

// A duration is read back from its text.

namespace evictd::fuzz {

void run(std::string_view input) {
  const auto duration = core::parse_duration(input);
  if (!is_good(duration)) return;
  check(value_of(core::parse_duration(core::to_string(*duration))) == *duration,
        "printed and read again it is the same");
}

}  // namespace evictd::fuzz
