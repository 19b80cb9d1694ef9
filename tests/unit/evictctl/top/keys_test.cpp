#include "evictctl/top/keys.hpp"

#include <doctest/doctest.h>

namespace evictd::ctl::keys_test {
namespace {

using Keys = std::vector<Key>;

TEST_CASE("keys are read as terminals send them, several in one go as well") {
  CHECK(read_keys("q") == Keys{Key::Quit});
  CHECK(read_keys("\x03") == Keys{Key::Quit});
  CHECK(read_keys("\x1b[A") == Keys{Key::Up});
  CHECK(read_keys("\x1bOA") == Keys{Key::Up});
  CHECK(read_keys("\x1b[B\x1b[Bj\t?") == Keys{Key::Down, Key::Down, Key::Down, Key::Down, Key::Help});
  CHECK(read_keys("\x0c\x1a") == Keys{Key::Redraw, Key::Suspend});
  CHECK(read_keys("").empty());
}

TEST_CASE("what means nothing here does nothing: its bytes are not keys of their own") {
  CHECK(read_keys("\x1b[5~q") == Keys{Key::Other, Key::Quit});    // Page Up
  CHECK(read_keys("\x1b[1;5Cq") == Keys{Key::Other, Key::Quit});  // Ctrl-Right
  CHECK(read_keys("\x1b") == Keys{Key::Other});                   // Escape alone
  CHECK(read_keys("\x1b[") == Keys{Key::Other});                  // cut off
  CHECK(read_keys("x") == Keys{Key::Other});
}

}  // namespace
}  // namespace evictd::ctl::keys_test
