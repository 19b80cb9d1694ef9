#include "wake/polled_file.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

namespace asio = boost::asio;

namespace evictd::wake {

struct PolledFile::Watch {
  explicit Watch(const asio::any_io_executor& reactor) : file{reactor}, timer{reactor} {}

  asio::posix::stream_descriptor file;
  asio::steady_timer timer;
  core::Duration pause{};
  std::function<void()> on_change;
};

os::FileResult<void> PolledFile::watch(os::FileDescriptor file, core::Duration pause, std::function<void()> on_change) {
  close();
  auto watch = std::make_shared<Watch>(reactor_);
  boost::system::error_code error;
  watch->file.assign(file.get(), error);
  if (error) return std::unexpected(os::system_error(error.value(), "epoll"));
  file.release();
  watch->pause = pause;
  watch->on_change = std::move(on_change);
  watch_ = std::move(watch);
  wait(watch_);
  return {};
}

void PolledFile::close() {
  if (!watch_) return;
  boost::system::error_code ignored;
  watch_->file.close(ignored);
  watch_->timer.cancel();
  watch_.reset();
}

int PolledFile::descriptor() const { return watch_->file.native_handle(); }

void PolledFile::wait(const std::shared_ptr<Watch>& watch) {
  // Asio asks epoll for EPOLLPRI with everything else, and calls that an error.
  watch->file.async_wait(asio::posix::stream_descriptor::wait_error, [watch](boost::system::error_code error) {
    if (error || !watch->file.is_open()) return;  // the handler may be gone
    watch->on_change();
    if (!watch->file.is_open()) return;
    if (watch->pause <= core::Duration::zero()) return wait(watch);
    watch->timer.expires_after(watch->pause);
    watch->timer.async_wait([watch](boost::system::error_code cancelled) {
      if (!cancelled && watch->file.is_open()) wait(watch);
    });
  });
}

}  // namespace evictd::wake
