#include "os/inotify.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace asio = boost::asio;

namespace evictd::os {
namespace {

// What the kernel calls "Too many open files" and "No space left on device" is neither here.

FileError open_error(int code) {
  if (code != EMFILE) return system_error(code, "inotify");
  return {Error{"no more inotify instances or descriptors; raise fs.inotify.max_user_instances or the limit of open "
                "files"},
          code};
}

FileError add_error(int code, std::string_view directory) {
  if (code != ENOSPC) return system_error(code, directory);
  return {Error{"no more inotify watches; raise fs.inotify.max_user_watches"}, code};
}

}  // namespace

Inotify::Inotify(const asio::any_io_executor& reactor, core::Duration pause, Listener& listener)
    : waiting_{reactor}, timer_{reactor}, pause_{pause}, listener_{listener} {}

Inotify::~Inotify() {
  if (waiting_.is_open()) waiting_.release();
}

FileResult<void> Inotify::open() {
  FileDescriptor queue{inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
  if (!queue) return std::unexpected(open_error(errno));
  boost::system::error_code error;
  waiting_.assign(queue.get(), error);
  if (error) return std::unexpected(system_error(error.value(), "epoll"));
  queue_ = std::move(queue);
  wait();
  return {};
}

FileResult<int> Inotify::add(const FileDescriptor& opened, std::uint32_t mask, std::string_view directory) {
  return add(fmt::format("/proc/self/fd/{}", opened.get()).c_str(), mask, directory);
}

FileResult<int> Inotify::add(const char* path, std::uint32_t mask, std::string_view directory) {
  const int watch = inotify_add_watch(queue_.get(), path, mask | IN_ONLYDIR);
  if (watch < 0) return std::unexpected(add_error(errno, directory));
  return watch;
}

std::shared_ptr<const FileDescriptor> Inotify::duplicate() {
  FileDescriptor copy{::fcntl(queue_.get(), F_DUPFD_CLOEXEC, 0)};
  return copy ? std::make_shared<const FileDescriptor>(std::move(copy)) : nullptr;
}

FileResult<int> Inotify::add_to(const FileDescriptor& queue, const std::filesystem::path& directory,
                                std::uint32_t mask) {
  const int watch = inotify_add_watch(queue.get(), directory.c_str(), mask | IN_ONLYDIR);
  if (watch < 0) return std::unexpected(add_error(errno, directory.native()));
  return watch;
}

void Inotify::remove(int watch) { inotify_rm_watch(queue_.get(), watch); }

void Inotify::wait() {
  waiting_.async_wait(waiting_.wait_read, [this](boost::system::error_code error) {
    if (error) return;  // closed: `this` may be gone
    // Each event that is queued would wake the reactor while it rests.
    if (pause_ > core::Duration::zero()) waiting_.release();
    read_all();
    if (pause_ > core::Duration::zero())
      rest();
    else
      wait();
  });
}

void Inotify::rest() {
  timer_.expires_after(pause_);
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) return;
    boost::system::error_code error;
    waiting_.assign(queue_.get(), error);
    if (error) return rest();  // epoll has its limits
    wait();
  });
}

/// The queue has room for 16,384 events (fs.inotify.max_queued_events) of 16 bytes and a name; what is left of it would
/// have it overflow before the next batch.
void Inotify::read_all() {
  constexpr int most_parts = 16;
  for (int part = 0; part < most_parts; ++part) {
    const auto size = ::read(queue_.get(), buffer_.data(), buffer_.size());
    if (size <= 0) break;
    tell(static_cast<std::size_t>(size));
  }
  listener_.on_batch_end();
}

void Inotify::tell(std::size_t size) {
  for (std::size_t offset = 0; offset + sizeof(inotify_event) <= size;) {
    inotify_event event{};
    std::memcpy(&event, buffer_.data() + offset, sizeof event);
    const auto* name = buffer_.data() + offset + sizeof event;
    offset += sizeof event + event.len;
    listener_.on_event({.watch = event.wd, .mask = event.mask, .name = event.len > 0 ? name : ""});
  }
}

}  // namespace evictd::os
