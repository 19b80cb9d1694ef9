#pragma once
#include <cstdint>
#include <string>

#include "core/quantity.hpp"
#include "core/signal.hpp"

namespace evictd::wake {

/// An amount in the signal's unit: "100Mi" of memory, "5k" inodes.
[[nodiscard]] inline std::string amount_text(core::Signal signal, std::int64_t amount) {
  const auto resource = core::resource_of(signal);
  const bool bytes = resource == core::Resource::Memory || resource == core::Resource::EphemeralStorage;
  return (bytes ? core::Quantity::bytes(amount) : core::Quantity::count(amount)).to_string();
}

/// A threshold as sources name it for people: "memory.available<100Mi".
[[nodiscard]] inline std::string threshold_text(core::Signal signal, std::int64_t threshold) {
  return std::string(core::name(signal)) + '<' + amount_text(signal, threshold);
}

}  // namespace evictd::wake
