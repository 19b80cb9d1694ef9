#include "evictctl/top/terminal.hpp"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace evictd::ctl {
namespace {

// The alternate screen, no cursor, and no going on in the next line: what is too long must not push the rest down.
constexpr std::string_view take = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view give_back = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

bool write_all(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Once all is written. A signal that comes meanwhile must not keep the terminal from being given back.
void set_mode(const termios& mode) {
  while (::tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) < 0 && errno == EINTR) {
  }
}

}  // namespace

bool speaks_utf8() {
  std::setlocale(LC_CTYPE, "");
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

Result<void> Terminal::usable() {
  if (::isatty(STDIN_FILENO) == 1 && obeys_sequences()) return {};
  return fail("top needs a terminal that it can draw on; \"evictctl status --watch\" needs none");
}

Terminal::Terminal() { ::tcgetattr(STDIN_FILENO, &before_); }

Terminal::~Terminal() { leave(); }

Screen Terminal::screen(const Paint& paint, bool utf8) {
  Screen screen{.utf8 = utf8, .paint = paint};
  if (winsize size{}; ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
  return screen;
}

bool Terminal::draw(const std::vector<std::string>& lines) {
  std::string frame;
  if (drawn_.size() != lines.size()) {
    frame = "\x1b[2J";
    drawn_.assign(lines.size(), "");
  }
  // Erased first: behind a full line the cursor still stands in the last column, which would be erased again.
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (drawn_[i] != lines[i]) frame += fmt::format("\x1b[{};1H\x1b[K{}", i + 1, lines[i]);
  drawn_ = lines;
  return write_all(frame);
}

void Terminal::enter() {
  auto raw = before_;
  ::cfmakeraw(&raw);
  set_mode(raw);
  forget();
  entered_ = true;
  (void)write_all(take);
}

void Terminal::leave() {
  if (!entered_) return;
  entered_ = false;
  (void)write_all(give_back);
  set_mode(before_);
}

}  // namespace evictd::ctl
