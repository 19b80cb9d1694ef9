#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "os/directory.hpp"
#include "os/file_error.hpp"

namespace evictd::wake {

/// One registration with a cgroup v1 memory cgroup (cgroup.event_control): an eventfd that the kernel signals. On the
/// reactor.
///
/// The kernel drops registrations with their cgroup, and signals each eventfd for a last time then: who is told looks
/// whether the registration is void.
class MemcgEvent {
 public:
  explicit MemcgEvent(boost::asio::any_io_executor reactor) : reactor_{std::move(reactor)} {}
  MemcgEvent(const MemcgEvent&) = delete;
  MemcgEvent& operator=(const MemcgEvent&) = delete;
  ~MemcgEvent() { close(); }

  /// In place of the one before. `argument`: what the file takes besides, a level say; may be empty. A file that is
  /// missing where its cgroup is there is the kernel's lack, not the cgroup's: EOPNOTSUPP. On an error the one before
  /// stays.
  [[nodiscard]] os::FileResult<void> open(const os::Directory& cgroup, const std::string& file,
                                          const std::string& argument, std::function<void()> on_event);
  /// Also from within `on_event`, which is not called again.
  void close();

  [[nodiscard]] bool is_open() const { return registration_ != nullptr; }
  /// It is open, but its cgroup is not there any more, or another one has its name: of this one nothing will be heard.
  [[nodiscard]] bool is_void() const;

 private:
  struct Registration;
  static void wait(const std::shared_ptr<Registration>& registration);

  boost::asio::any_io_executor reactor_;
  std::shared_ptr<Registration> registration_;
};

}  // namespace evictd::wake
