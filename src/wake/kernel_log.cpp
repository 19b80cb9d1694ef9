#include "wake/kernel_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace asio = boost::asio;

namespace evictd::wake {
namespace {

/// No record is larger. (kernel: CONSOLE_EXT_LOG_MAX and PRINTK_MESSAGE_MAX)
constexpr std::size_t largest_record = 16384;

}  // namespace

os::FileResult<os::FileDescriptor> open_kernel_log(const std::string& path) {
  os::FileDescriptor file{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (!file || ::lseek(file.get(), 0, SEEK_END) < 0) return std::unexpected(os::system_error(errno, path));
  return file;
}

KernelLog::KernelLog(const asio::any_io_executor& reactor, Wakes& wakes, os::FileResult<os::FileDescriptor> opened,
                     Listener& listener, const Options& options)
    : notifier_{wakes, core::WakeSource::KernelOom},
      listener_{listener},
      options_{options},
      file_{reactor},
      timer_{reactor} {
  if (!opened) {
    why_off_ = opened.error().message;
    return;
  }
  boost::system::error_code error;
  file_.assign(opened->get(), error);
  if (error) {
    why_off_ = os::system_error(error.value(), "epoll").message;
    return;
  }
  static_cast<void>(opened->release());
  wait();
}

void KernelLog::wait() {
  file_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [this, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
                     if (error || alive.expired()) return;
                     drain();
                     if (file_.is_open()) rest();
                   });
}

void KernelLog::rest() {
  timer_.expires_after(options_.pause);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) wait();
  });
}

void KernelLog::drain() {
  for (std::size_t read = 0; read < options_.most_records && read_one();) ++read;
}

/// False where there is nothing more to read now.
bool KernelLog::read_one() {
  std::array<char, largest_record> record;
  const auto size = ::read(file_.native_handle(), record.data(), record.size());
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (size < 0 && errno == EINTR) return true;
  // Overwritten, or larger than any should be: the next one is read next.
  if (size < 0 && (errno == EPIPE || errno == EINVAL)) {
    ++overruns_;
    log_.missed();
    listener_.kills_missed();
    return true;
  }
  if (size <= 0) {
    why_off_ = size == 0 ? "it has ended" : os::system_error(errno, "the kernel's log").message;
    boost::system::error_code ignored;
    file_.close(ignored);
    listener_.kills_missed();
    return false;
  }
  const auto kill = log_.read({record.data(), static_cast<std::size_t>(size)});
  if (!kill) return true;
  ++kills_;
  if (listener_.killed(*kill)) notifier_.wake("the kernel killed for want of memory");
  return true;
}

std::vector<SourceStatus> KernelLog::status() const {
  auto status =
      notifier_.status("kernel-oom", works() ? "armed" : fmt::format("off: {}; kills are counted only", why_off_));
  status.detail = fmt::format("{} kills told, overrun {} times", kills_, overruns_);
  return {status};
}

}  // namespace evictd::wake
