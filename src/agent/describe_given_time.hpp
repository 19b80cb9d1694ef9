#pragma once
#include <evictd.pb.h>

#include <string>

#include "evict/progress.hpp"

// What became of a pod that was held before it was killed, for the API and for people.

namespace evictd::agent {

[[nodiscard]] v1::Braked describe_braked(const evict::Braked& braked);
/// "held at 312.0 MiB, given 5 s to end", "ended by itself after 1.2 s", "killed after 5.0 s",
/// "killed after 0.4 s: memory.available fell to 12 MiB"
[[nodiscard]] std::string describe(const evict::Braked& braked);

[[nodiscard]] v1::HooksAsked describe_asked(const evict::HooksAsked& asked);
/// "asked before the kill: dump.sock done after 0.4 s, drain.sock no answer in time"
[[nodiscard]] std::string describe(const evict::HooksAsked& asked);

}  // namespace evictd::agent
