#include "wake/inotify.hpp"

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstring>

namespace asio = boost::asio;

namespace evictd::wake {

Inotify::Inotify(asio::any_io_executor reactor, core::Duration pause, Handlers handlers)
    : descriptor_{reactor}, timer_{std::move(reactor)}, pause_{pause}, handlers_{std::move(handlers)} {}

node::FileResult<void> Inotify::open() {
  const int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0) return std::unexpected(node::system_error(errno, "inotify"));
  descriptor_.assign(descriptor);
  wait();
  return {};
}

node::FileResult<int> Inotify::add(const std::filesystem::path& directory, std::uint32_t mask) {
  const int watch = inotify_add_watch(descriptor_.native_handle(), directory.c_str(), mask | IN_ONLYDIR);
  if (watch < 0) return std::unexpected(node::system_error(errno, directory.native()));
  return watch;
}

void Inotify::remove(int watch) { inotify_rm_watch(descriptor_.native_handle(), watch); }

void Inotify::wait() {
  descriptor_.async_read_some(asio::buffer(buffer_), [this](boost::system::error_code error, std::size_t size) {
    if (error) return;  // closed: `this` may be gone
    read(size);
    if (pause_ == core::Duration::zero()) return wait();
    timer_.expires_after(pause_);
    timer_.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) wait();
    });
  });
}

void Inotify::read(std::size_t size) {
  for (std::size_t offset = 0; offset + sizeof(inotify_event) <= size;) {
    inotify_event event{};
    std::memcpy(&event, buffer_.data() + offset, sizeof event);
    const auto* name = buffer_.data() + offset + sizeof event;
    offset += sizeof event + event.len;
    handlers_.on_event({.watch = event.wd, .mask = event.mask, .name = event.len > 0 ? name : ""});
  }
  if (handlers_.on_batch_end) handlers_.on_batch_end();
}

}  // namespace evictd::wake
