#include "rpc/server/stalled_clients.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "os/file_descriptor.hpp"

namespace asio = boost::asio;

namespace evictd::rpc {
namespace {

/// One that has hung up has room, too: nobody waits for it.
bool has_room(int connection) {
  pollfd look{.fd = connection, .events = POLLOUT, .revents = 0};
  return ::poll(&look, 1, 0) != 0;
}

}  // namespace

/// gRPC has the connection's own descriptor, and may close it at any time: this one is ours.
struct StalledClients::Watch {
  Watch(const asio::any_io_executor& executor, const OpenSocket& connection, os::FileDescriptor own)
      : of(connection), socket(executor, own.get()), deadline(executor) {
    own.release();
  }
  OpenSocket of;
  asio::posix::stream_descriptor socket;
  asio::steady_timer deadline;
};

StalledClients::StalledClients(asio::any_io_executor executor, std::chrono::milliseconds patience,
                               std::move_only_function<void(int)> cut_off)
    : executor_(std::move(executor)), patience_(patience), cut_off_(std::move(cut_off)) {}

StalledClients::~StalledClients() = default;

void StalledClients::look_at(const OpenSocket& connection) {
  if (has_room(connection.number)) return;
  if (std::ranges::any_of(watches_, [&](const auto& watch) { return watch->of == connection; })) return;
  os::FileDescriptor own(::fcntl(connection.number, F_DUPFD_CLOEXEC, 0));
  if (!connection.is_same(own.get())) return;  // it was closed, and its number is another one's now
  const auto& watch = watches_.emplace_back(std::make_shared<Watch>(executor_, connection, std::move(own)));
  const auto weak = std::weak_ptr(watch);
  // There is room once the client has taken most of what lies there. gRPC fills it again, and may be quicker than this.
  watch->socket.async_wait(asio::posix::stream_descriptor::wait_write, [this, weak](boost::system::error_code) {
    if (const auto ended = weak.lock()) watches_.remove(ended);
  });
  watch->deadline.expires_after(patience_);
  watch->deadline.async_wait([this, weak](boost::system::error_code error) {
    const auto late = weak.lock();
    if (error || !late) return;
    const int number = late->socket.native_handle();
    if (!has_room(number)) {
      ::shutdown(number, SHUT_RDWR);
      cut_off_(number);
    }
    watches_.remove(late);
  });
}

}  // namespace evictd::rpc
