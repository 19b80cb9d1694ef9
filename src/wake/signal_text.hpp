#pragma once
#include <cstdint>
#include <string>

#include "core/quantity.hpp"
#include "core/signal.hpp"

namespace evictd::wake {

/// An amount in the signal's unit: "100Mi" of memory, "5k" inodes.
[[nodiscard]] inline std::string amount_text(core::Signal signal, std::int64_t amount) {
  return (core::is_counted(signal) ? core::Quantity::count(amount) : core::Quantity::bytes(amount)).to_string();
}

/// A threshold as sources name it for people: "memory.available<100Mi".
[[nodiscard]] inline std::string threshold_text(core::Signal signal, std::int64_t threshold) {
  return std::string(core::name(signal)) + '<' + amount_text(signal, threshold);
}

}  // namespace evictd::wake
