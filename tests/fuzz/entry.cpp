#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/printable.hpp"
#include "target.hpp"

namespace evictd::fuzz {

void check(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void check(const Error& error) {
  check(!error.message.empty(), "an error says something");
  check(core::printable(error.message) == error.message, "an error is one line that is safe for a terminal");
}

}  // namespace evictd::fuzz

// What libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  evictd::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
