#include "evictctl/paint.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

namespace evictd::ctl {
namespace {

// The terminal's own sixteen colours, which its owner chose to be readable.
constexpr std::array<std::string_view, 8> sequences{"",         "\x1b[1m",  "\x1b[2m", "\x1b[1;31m",
                                                    "\x1b[33m", "\x1b[32m", "\x1b[1m", "\x1b[7m"};

}  // namespace

bool obeys_sequences() {
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || *term == '\0' || std::string_view(term) == "dumb";
  return !dumb && ::isatty(STDOUT_FILENO) == 1;
}

std::string Paint::operator()(Style style, std::string_view text) const {
  const auto sequence = sequences[static_cast<std::size_t>(style)];
  if (!on_ || sequence.empty() || text.empty()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", sequence, text);
}

}  // namespace evictd::ctl
