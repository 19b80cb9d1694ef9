#include "wake/memcg_event.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/kept_file.hpp"

namespace asio = boost::asio;

namespace evictd::wake {

struct MemcgEvent::Registration {
  Registration(const asio::any_io_executor& reactor, os::KeptFile file, std::function<void()> on_event)
      : event{reactor}, file{std::move(file)}, on_event{std::move(on_event)} {}

  asio::posix::stream_descriptor event;
  os::KeptFile file;
  std::function<void()> on_event;
  std::uint64_t count = 0;  // what read(2) of the eventfd fills in
};

os::FileResult<void> MemcgEvent::open(const os::Directory& cgroup, const std::string& name, const std::string& argument,
                                      std::function<void()> on_event) {
  const auto lacking = [](os::FileError error) {
    if (error.is_gone()) error.code = EOPNOTSUPP;
    return std::unexpected(std::move(error));
  };
  auto file = cgroup.file(name);
  if (!file) return lacking(file.error());
  const auto control_path = cgroup.path() + "/cgroup.event_control";
  const os::FileDescriptor control{::openat(cgroup.descriptor(), "cgroup.event_control", O_WRONLY | O_CLOEXEC)};
  if (!control) return lacking(os::system_error(errno, control_path));
  os::FileDescriptor event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!event) return std::unexpected(os::system_error(errno, "eventfd"));
  const auto command = fmt::format("{} {} {}", event.get(), file->descriptor(), argument);
  auto registration = std::make_shared<Registration>(reactor_, *std::move(file), std::move(on_event));
  boost::system::error_code error;
  registration->event.assign(event.get(), error);
  if (error) return std::unexpected(os::system_error(error.value(), "epoll"));
  event.release();
  if (::write(control.get(), command.data(), command.size()) < 0)
    return std::unexpected(os::system_error(errno, control_path));
  close();
  registration_ = std::move(registration);
  wait(registration_);
  return {};
}

void MemcgEvent::close() {
  boost::system::error_code ignored;
  if (registration_) registration_->event.close(ignored);
  registration_.reset();
}

bool MemcgEvent::is_void() const {
  if (!registration_) return false;
  std::array<char, 256> buffer;
  const auto content = registration_->file.read(buffer);
  return !content && content.error().is_gone();
}

void MemcgEvent::wait(const std::shared_ptr<Registration>& registration) {
  registration->event.async_read_some(asio::buffer(&registration->count, sizeof registration->count),
                                      [registration](boost::system::error_code error, std::size_t) {
                                        // Closed: the handler may be gone.
                                        if (error || !registration->event.is_open()) return;
                                        registration->on_event();
                                        if (registration->event.is_open()) wait(registration);
                                      });
}

}  // namespace evictd::wake
