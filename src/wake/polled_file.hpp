#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

namespace evictd::wake {

/// A file of the kernel's that announces changes by POLLPRI: memory.events, a PSI trigger. On the reactor.
///
/// Of a cgroup that was removed either nothing comes any more, or POLLPRI without end: whoever watches reads the file
/// in `on_change`, closes where that fails (ENODEV), and looks now and then.
class PolledFile {
 public:
  explicit PolledFile(boost::asio::any_io_executor reactor) : reactor_{std::move(reactor)} {}
  PolledFile(const PolledFile&) = delete;
  PolledFile& operator=(const PolledFile&) = delete;
  ~PolledFile() { close(); }

  /// Watches this descriptor in place of the one before. It is its own open file, not a dup: epoll and the kernel's
  /// memory of what was read last belong to the open file. After each call of `on_change` nothing is looked at for
  /// `pause`; what came meanwhile is reported at its end. The error is epoll's, which has its limits too.
  [[nodiscard]] os::FileResult<void> watch(os::FileDescriptor file, core::Duration pause,
                                           std::function<void()> on_change);
  /// Also from within `on_change`, which is not called again.
  void close();

  [[nodiscard]] bool is_open() const { return watch_ != nullptr; }
  /// Only while it is open.
  [[nodiscard]] int descriptor() const;

 private:
  struct Watch;
  static void wait(const std::shared_ptr<Watch>& watch);

  boost::asio::any_io_executor reactor_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace evictd::wake
