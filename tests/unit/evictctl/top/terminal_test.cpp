#include "evictctl/top/terminal.hpp"

#include <doctest/doctest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace evictd::ctl::terminal_test {
namespace {

/// What a terminal is sent by someone who draws these lines and leaves.
std::string sent(const std::vector<std::string>& lines) {
  int terminal = -1;
  const auto child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    bool drawn = false;
    {
      Terminal own;
      own.enter();
      drawn = own.draw(lines);
    }
    ::_exit(drawn ? 0 : 1);
  }
  std::string text;
  std::array<char, 4096> part{};
  // An error is how the end of the other side is told.
  for (ssize_t length = 0; (length = ::read(terminal, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(length));
  ::close(terminal);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  return text;
}

TEST_CASE("a line is erased before it is drawn: behind a full one its last column would go") {
  CHECK(sent({"first", "second"}).find("\x1b[1;1H\x1b[Kfirst\x1b[2;1H\x1b[Ksecond\x1b[") != std::string::npos);
}

}  // namespace
}  // namespace evictd::ctl::terminal_test
