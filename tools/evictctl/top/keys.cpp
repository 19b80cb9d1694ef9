#include "evictctl/top/keys.hpp"

#include <array>
#include <utility>

namespace evictd::ctl {
namespace {

// Control characters are what a terminal in raw mode sends instead of signals.
constexpr std::array<std::pair<std::string_view, Key>, 20> keys{{
    {"\x1b[A", Key::Up},     {"\x1bOA", Key::Up},   {"\x1b[Z", Key::Up},   {"k", Key::Up},     {"\x1b[B", Key::Down},
    {"\x1bOB", Key::Down},   {"\t", Key::Down},     {"j", Key::Down},      {"q", Key::Quit},   {"Q", Key::Quit},
    {"\x03", Key::Quit},     {"\x04", Key::Quit},   {"?", Key::Help},      {"h", Key::Help},   {"H", Key::Help},
    {"\x1b[11~", Key::Help}, {"\x1bOP", Key::Help}, {"\x0c", Key::Redraw}, {"r", Key::Redraw}, {"\x1a", Key::Suspend},
}};

/// How many bytes an escape sequence takes that means nothing here.
std::size_t length_of_unknown(std::string_view bytes) {
  if (bytes[0] != '\x1b' || bytes.size() < 2 || (bytes[1] != '[' && bytes[1] != 'O')) return 1;
  for (std::size_t i = 2; i < bytes.size(); ++i)
    if (bytes[i] >= 0x40 && bytes[i] <= 0x7e) return i + 1;
  return bytes.size();
}

}  // namespace

std::vector<Key> read_keys(std::string_view bytes) {
  std::vector<Key> pressed;
  while (!bytes.empty()) {
    auto length = length_of_unknown(bytes);
    auto key = Key::Other;
    for (const auto& [sequence, meaning] : keys)
      if (bytes.starts_with(sequence)) {
        key = meaning;
        length = sequence.size();
      }
    pressed.push_back(key);
    bytes.remove_prefix(length);
  }
  return pressed;
}

}  // namespace evictd::ctl
