#include "wake/oom_control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>

namespace asio = boost::asio;

namespace evictd::wake {

struct OomControl::Registration {
  Registration(asio::any_io_executor reactor, int event, node::KeptFile file)
      : event{std::move(reactor), event}, file{std::move(file)} {}

  asio::posix::stream_descriptor event;
  node::KeptFile file;      // memory.oom_control
  std::uint64_t count = 0;  // what read(2) of the eventfd fills in

  /// The cgroup is not there any more, or another one has its name: of this one nothing will be heard again.
  [[nodiscard]] bool is_void() const {
    std::array<char, 256> buffer;
    const auto table = file.read(buffer);
    return !table && table.error().is_gone();
  }
};

OomControl::OomControl(asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy,
                       std::string cgroup)
    : reactor_{std::move(reactor)}, notifier_{wakes, name}, hierarchy_{hierarchy}, cgroup_{std::move(cgroup)} {}

OomControl::~OomControl() { close(); }

void OomControl::close() {
  if (registration_) registration_->event.close();
  registration_.reset();
}

node::FileResult<std::shared_ptr<OomControl::Registration>> OomControl::register_event() const {
  const auto directory = hierarchy_.memory(cgroup_);
  if (!directory) return std::unexpected(directory.error());
  // A file that is missing where its cgroup is there is the kernel's lack, not the cgroup's.
  const auto lacking = [](node::FileError error) {
    if (error.is_gone()) error = {Error{error.message + "; this kernel does not tell of OOM"}, EOPNOTSUPP};
    return std::unexpected(std::move(error));
  };
  auto file = directory->file("memory.oom_control");
  if (!file) return lacking(file.error());
  const auto control_path = directory->path() + "/cgroup.event_control";
  const node::FileDescriptor control{::openat(directory->descriptor(), "cgroup.event_control", O_WRONLY | O_CLOEXEC)};
  if (!control) return lacking(node::system_error(errno, control_path));
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return std::unexpected(node::system_error(errno, "eventfd"));
  const auto command = fmt::format("{} {}", event, file->descriptor());
  auto registration = std::make_shared<Registration>(reactor_, event, *std::move(file));
  if (::write(control.get(), command.data(), command.size()) < 0)
    return std::unexpected(node::system_error(errno, control_path));
  return registration;
}

void OomControl::arm(const Arming&) {
  if (registration_) {
    if (!registration_->is_void()) return;
    close();
  }
  auto registration = register_event();
  if (!registration && !registration.error().is_gone()) return notifier_.failed(registration.error());
  notifier_.works();
  if (!registration) return;  // the cgroup will come
  registration_ = *std::move(registration);
  wait(registration_);
}

void OomControl::wait(const std::shared_ptr<Registration>& registration) {
  registration->event.async_read_some(asio::buffer(&registration->count, sizeof registration->count),
                                      [this, registration](boost::system::error_code error, std::size_t) {
                                        if (error == asio::error::operation_aborted || !registration->event.is_open())
                                          return;  // closed; `this` may be gone
                                        if (error) return notifier_.failed({error.message()});
                                        // The kernel signals a removed cgroup's eventfds for a last time: that is no
                                        // news of memory.
                                        if (registration->is_void()) return close();
                                        notifier_.wake(fmt::format("{} is out of memory", cgroup_));
                                        wait(registration);
                                      });
}

std::vector<SourceStatus> OomControl::status() const {
  return {notifier_.status("oom " + cgroup_, registration_ ? "armed" : "waiting: no such cgroup yet")};
}

}  // namespace evictd::wake
