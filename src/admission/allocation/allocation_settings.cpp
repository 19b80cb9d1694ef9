#include "admission/allocation/allocation_settings.hpp"

#include <algorithm>
#include <array>

namespace evictd::admission {

Result<bool> parse_option(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 6> yes{"1", "t", "T", "true", "TRUE", "True"};
  constexpr std::array<std::string_view, 6> no{"0", "f", "F", "false", "FALSE", "False"};
  if (std::ranges::find(yes, value) != yes.end()) return true;
  if (std::ranges::find(no, value) != no.end()) return false;
  return fail("bad value for option \"" + std::string(name) + "\": \"" + std::string(value) +
              "\" is neither true nor false");
}

}  // namespace evictd::admission
