#pragma once
#include <termios.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/top/screen.hpp"

namespace evictd::ctl {

/// Whether the terminal's characters are UTF-8, as LC_ALL, LC_CTYPE or LANG says. Reads the locale from them.
[[nodiscard]] bool speaks_utf8();

/// The terminal that this process was started on. From enter() on it is taken: no echo, each key at once, another
/// screen than the one that the shell wrote on. When this goes all of that is as it was.
class Terminal {
 public:
  /// An error where input or output is no terminal, or one that cannot be drawn on (TERM=dumb).
  [[nodiscard]] static Result<void> usable();

  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// Its size as it is now.
  [[nodiscard]] static Screen screen(const Paint& paint, bool utf8);
  /// Puts the lines on it: those that are not there yet. False when it is gone.
  [[nodiscard]] bool draw(const std::vector<std::string>& lines);
  /// The next draw() draws everything.
  void forget() { drawn_.clear(); }

  void enter();
  /// Gives it back until enter().
  void leave();

 private:
  termios before_{};
  std::vector<std::string> drawn_;
  bool entered_ = false;
};

}  // namespace evictd::ctl
