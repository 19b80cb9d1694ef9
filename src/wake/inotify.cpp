#include "wake/inotify.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

// What the kernel calls "Too many open files" and "No space left on device" is neither here.

os::FileError open_error(int code) {
  if (code != EMFILE) return os::system_error(code, "inotify");
  return {Error{"no more inotify instances or descriptors; raise fs.inotify.max_user_instances or the limit of open "
                "files"},
          code};
}

os::FileError add_error(int code, const std::filesystem::path& directory) {
  if (code != ENOSPC) return os::system_error(code, directory.native());
  return {Error{"no more inotify watches; raise fs.inotify.max_user_watches"}, code};
}

}  // namespace

Inotify::Inotify(const asio::any_io_executor& reactor, core::Duration pause, Listener& listener)
    : descriptor_{reactor}, timer_{reactor}, pause_{pause}, listener_{listener} {}

os::FileResult<void> Inotify::open() {
  os::FileDescriptor descriptor{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  if (!descriptor) return std::unexpected(open_error(errno));
  boost::system::error_code error;
  descriptor_.assign(descriptor.get(), error);
  if (error) return std::unexpected(os::system_error(error.value(), "epoll"));
  descriptor.release();
  wait();
  return {};
}

os::FileResult<int> Inotify::add(const os::FileDescriptor& opened, std::uint32_t mask,
                                 const std::filesystem::path& directory) {
  return add(fmt::format("/proc/self/fd/{}", opened.get()), mask, directory);
}

os::FileResult<int> Inotify::add(const std::filesystem::path& path, std::uint32_t mask,
                                 const std::filesystem::path& directory) {
  const int watch = inotify_add_watch(descriptor_.native_handle(), path.c_str(), mask | IN_ONLYDIR);
  if (watch < 0) return std::unexpected(add_error(errno, directory));
  return watch;
}

std::shared_ptr<const os::FileDescriptor> Inotify::duplicate() {
  os::FileDescriptor copy{::fcntl(descriptor_.native_handle(), F_DUPFD_CLOEXEC, 0)};
  return copy ? std::make_shared<const os::FileDescriptor>(std::move(copy)) : nullptr;
}

os::FileResult<int> Inotify::add_to(const os::FileDescriptor& queue, const std::filesystem::path& directory,
                                    std::uint32_t mask) {
  const int watch = inotify_add_watch(queue.get(), directory.c_str(), mask | IN_ONLYDIR);
  if (watch < 0) return std::unexpected(add_error(errno, directory));
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
    listener_.on_event({.watch = event.wd, .mask = event.mask, .name = event.len > 0 ? name : ""});
  }
  listener_.on_batch_end();
}

}  // namespace evictd::wake
