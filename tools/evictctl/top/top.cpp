#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "evictctl/choices.hpp"
#include "evictctl/client.hpp"
#include "evictctl/commands.hpp"
#include "evictctl/paint.hpp"
#include "evictctl/top/feed.hpp"
#include "evictctl/top/keys.hpp"
#include "evictctl/top/terminal.hpp"
#include "evictctl/top/view.hpp"

namespace evictd::ctl {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// The terminal of the standard input once more: what Asio reads becomes non-blocking, and the shell shares the
/// standard input. After su that terminal is somebody else's, and only to be had as the controlling one. -1: an error.
int open_keyboard() {
  const int own = ::open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC | O_NOCTTY);
  return own >= 0 ? own : ::open("/dev/tty", O_RDONLY | O_CLOEXEC);
}

class Top {
 public:
  /// Owns the keyboard.
  Top(int keyboard, Client first, Feed::Connect connect, const Paint& paint, std::string signal)
      : keyboard_{loop_, keyboard},
        paint_{paint},
        state_{.signal = std::move(signal)},
        feed_{loop_, std::move(first), std::move(connect), state_, [this] { draw_soon(); }} {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) signals_.add(number);
  }

  /// Takes the terminal only now that no signal ends this process.
  void run() {
    terminal_.enter();
    asio::co_spawn(loop_, watch_clock(), rethrow);
    asio::co_spawn(loop_, watch_signals(), rethrow);
    asio::co_spawn(loop_, watch_keys(), rethrow);
    loop_.run();
  }

 private:
  void draw() {
    if (!terminal_.draw(render(state_, Terminal::screen(paint_, utf8_), std::chrono::system_clock::now())))
      loop_.stop();
  }

  /// What comes at once is drawn at once.
  void draw_soon() {
    if (std::exchange(is_drawn_soon_, true)) return;
    soon_.expires_after(10ms);
    soon_.async_wait([this](const boost::system::error_code&) {
      is_drawn_soon_ = false;
      draw();
    });
  }

  /// Times are shown to the second.
  asio::awaitable<void> watch_clock() {
    for (;;) {
      draw();
      const auto now = std::chrono::system_clock::now();
      clock_.expires_after(std::chrono::ceil<std::chrono::seconds>(now + 1ms) - now);
      co_await clock_.async_wait(asio::use_awaitable);
    }
  }

  /// The terminal is to be given back before the process goes.
  asio::awaitable<void> watch_signals() {
    for (;;) {
      const int number = co_await signals_.async_wait(asio::use_awaitable);
      if (number != SIGWINCH) co_return loop_.stop();
      terminal_.forget();
      draw();
    }
  }

  asio::awaitable<void> watch_keys() {
    std::array<char, 256> bytes{};
    for (;;) {
      const auto [gone, count] =
          co_await keyboard_.async_read_some(asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
      if (gone) co_return loop_.stop();
      const auto signal = state_.signal;
      for (const auto key : read_keys({bytes.data(), count})) {
        if (key == Key::Quit) co_return loop_.stop();
        if (key == Key::Redraw) terminal_.forget();
        if (key == Key::Suspend) suspend();
        press(state_, key);
      }
      if (state_.signal != signal) feed_.look_now();
      draw();
    }
  }

  void suspend() {
    terminal_.leave();
    ::kill(::getpid(), SIGSTOP);
    terminal_.enter();
  }

  asio::io_context loop_{1};
  asio::signal_set signals_{loop_};
  asio::posix::stream_descriptor keyboard_;
  asio::steady_timer clock_{loop_};
  asio::steady_timer soon_{loop_};
  bool is_drawn_soon_ = false;
  Paint paint_;
  bool utf8_ = speaks_utf8();
  TopState state_;
  Feed feed_;
  Terminal terminal_;  // goes first
};

Result<void> top(Context& context, const std::string& signal) {
  if (auto usable = Terminal::usable(); !usable) {
    context.bad_input = true;
    return usable;
  }
  const auto connect = [&context] { return Client::connect(context); };
  auto client = connect();
  if (!client) return std::unexpected(client.error());
  const int keyboard = open_keyboard();
  if (keyboard < 0) return fail(fmt::format("the terminal cannot be opened: {}", std::strerror(errno)));
  try {
    Top(keyboard, *std::move(client), connect, context.paint(), signal).run();
  } catch (const std::exception& error) {  // which has given the terminal back
    return fail(error.what());
  }
  return {};
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("top", "The node live: signals against thresholds, who goes first, what happens");
  const auto signal = std::make_shared<std::string>("memory.available");
  auto* option = command->add_option("-s,--signal", *signal, "Whose ranking to show at first")
                     ->type_name("SIGNAL")
                     ->capture_default_str();
  context.choices.limit(*option, signal_names());
  context.on(*command, [&context, signal] { return top(context, *signal); });
}

}  // namespace evictd::ctl
