#include "host/end_deadline.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <string>
#include <thread>

#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::host {
namespace {

/// Not through the log, which may be what hangs.
void write_at_once(const std::string& line) {
  pollfd descriptor{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&descriptor, 1, 0) != 1 || (descriptor.revents & POLLOUT) == 0) return;
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

[[noreturn]] void end_unless_ended(std::chrono::seconds patience) {
  std::this_thread::sleep_for(patience);
  write_at_once(fmt::format("evictd: it could not end within {} s, for something hangs; it ends all the same\n",
                            patience.count()));
  ::_exit(1);
}

void guard_the_end(std::chrono::seconds patience) {
  asio::io_context context{1};
  asio::signal_set signals{context, SIGINT, SIGTERM};
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (!error) end_unless_ended(patience);
  });
  context.run();
}

}  // namespace

void end_within(std::chrono::seconds patience) { std::thread(&guard_the_end, patience).detach(); }

void end_after(std::chrono::seconds patience) { std::thread(&end_unless_ended, patience).detach(); }

void end_now(int exit_code) {
  os::flush_log(500ms);
  ::_exit(exit_code);
}

}  // namespace evictd::host
