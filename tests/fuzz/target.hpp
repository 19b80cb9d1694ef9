#pragma once
#include <string_view>

#include "core/error.hpp"

namespace evictd::fuzz {

/// What every target defines: reads the input as the agent would, and checks what must hold of whatever comes.
/// An exception that leaves it is a bug, too.
void run(std::string_view input);

/// Where it does not hold, the target ends and libFuzzer keeps the input.
void check(bool holds, std::string_view what);

/// An error says something, in one line that is safe for a terminal.
void check(const Error& error);

/// Of what was read: whether it could be. An error is checked.
template <class T>
[[nodiscard]] bool is_good(const Result<T>& result) {
  if (!result) check(result.error());
  return result.has_value();
}

/// Of what was printed by evictd itself, so that it must be readable.
template <class T>
[[nodiscard]] T value_of(const Result<T>& result) {
  check(result.has_value(), result ? "" : result.error().message);
  return *result;
}

}  // namespace evictd::fuzz
