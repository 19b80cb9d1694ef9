#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "testbed/agent.hpp"

namespace integration {

/// All that the history knows, that of earlier agents as well.
[[nodiscard]] std::vector<testbed::Event> history(const testbed::Agent& agent);

[[nodiscard]] std::ptrdiff_t count(const std::vector<testbed::Event>& events, testbed::Event::Kind kind,
                                   std::string_view pod);

}  // namespace integration
