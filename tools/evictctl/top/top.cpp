#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <array>
#include <chrono>
#include <csignal>
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

/// What ends it, and SIGWINCH, come through a descriptor while this lives: the terminal is to be given back before the
/// process goes. To be made before there are threads, which inherit the mask.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&set, number);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    while (next() != 0) {
    }
    ::close(fd_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  [[nodiscard]] int descriptor() const { return fd_; }
  /// 0: none is there.
  [[nodiscard]] int next() const {
    signalfd_siginfo taken{};
    return ::read(fd_, &taken, sizeof taken) == sizeof taken ? static_cast<int>(taken.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  int fd_ = -1;
};

class Top {
 public:
  Top(const Signals& signals, Feed& feed, const Paint& paint, std::string signal)
      : signals_{signals}, feed_{feed}, paint_{paint}, utf8_{speaks_utf8()} {
    state_.signal = std::move(signal);
  }

  void run() {
    while (draw() && wait()) {
    }
  }

 private:
  bool draw() {
    return terminal_.draw(render(state_, Terminal::screen(paint_, utf8_), std::chrono::system_clock::now()));
  }

  /// Until there is something to draw, a new second at the latest. False: it is over.
  bool wait() {
    using namespace std::chrono;
    const auto now = system_clock::now();
    const auto until_next_second = ceil<milliseconds>(ceil<seconds>(now + milliseconds(1)) - now);
    std::array<pollfd, 3> fds{{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                               {.fd = signals_.descriptor(), .events = POLLIN, .revents = 0},
                               {.fd = feed_.descriptor(), .events = POLLIN, .revents = 0}}};
    if (::poll(fds.data(), fds.size(), static_cast<int>(until_next_second.count())) <= 0) return true;
    if (fds[2].revents != 0) feed_.take(state_);
    if (fds[1].revents != 0 && !on_signals()) return false;
    return fds[0].revents == 0 || on_keys();
  }

  bool on_signals() {
    while (const int number = signals_.next())
      if (number == SIGWINCH)
        terminal_.forget();
      else
        return false;
    return true;
  }

  bool on_keys() {
    std::array<char, 256> bytes{};
    const auto count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0) return false;  // the terminal is gone
    for (const auto key : read_keys({bytes.data(), static_cast<std::size_t>(count)})) {
      if (key == Key::Quit) return false;
      if (key == Key::Redraw) terminal_.forget();
      if (key == Key::Suspend) suspend();
      press(state_, key);
    }
    feed_.choose(state_.signal);
    return true;
  }

  void suspend() {
    terminal_.leave();
    ::kill(::getpid(), SIGSTOP);
    terminal_.enter();
  }

  const Signals& signals_;
  Feed& feed_;
  Paint paint_;
  bool utf8_;
  TopState state_;
  Terminal terminal_;
};

Result<void> top(Context& context, const std::string& signal) {
  if (auto usable = Terminal::usable(); !usable) {
    context.bad_input = true;
    return usable;
  }
  const Signals signals;
  const auto connect = [&context] { return Client::connect(context); };
  auto client = connect();
  if (!client) return std::unexpected(client.error());
  Feed feed(*std::move(client), connect, signal);
  Top(signals, feed, context.paint(), signal).run();
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
