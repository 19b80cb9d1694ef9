#pragma once
#include "agent/trimmer.hpp"

namespace evictd::v1 {
class Event;
}

namespace evictd::agent {

/// A trim as the event TRIMMED: "trimmed 312 MiB from 3 pods in 0.4 s, nobody evicted".
[[nodiscard]] v1::Event describe_trim(const TrimReport& report);

}  // namespace evictd::agent
