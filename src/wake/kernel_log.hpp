#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/duration.hpp"
#include "core/kernel_oom_log.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// /dev/kmsg from its end on. Takes CAP_SYSLOG, or kernel.dmesg_restrict = 0. Reads of it do not wait.
[[nodiscard]] os::FileResult<os::FileDescriptor> open_kernel_log(const std::string& path);

/// The kernel's log, for the kills of its OOM killer. On the reactor. Where it cannot be read it is off, which is no
/// failure: the service's sandbox hides it.
class KernelLog final : public Source {
 public:
  class Listener {
   public:
    /// Whether a pass should look: not where a pod has merely met its own limit.
    [[nodiscard]] virtual bool killed(const core::OomKill& kill) = 0;
    /// Records were overwritten before they were read: there may have been kills.
    virtual void kills_missed() = 0;

   protected:
    ~Listener() = default;
  };
  struct Options {
    /// Between two looks: however much others have logged, it is read no more often.
    core::Duration pause = std::chrono::milliseconds(50);
    /// At one look, some 2 ms. A log that grows faster than 20,000 records a second overruns it.
    std::size_t most_records = 1000;
  };

  /// `listener` outlives the reactor's last handler.
  KernelLog(const boost::asio::any_io_executor& reactor, Wakes& wakes, os::FileResult<os::FileDescriptor> opened,
            Listener& listener, const Options& options);
  KernelLog(const boost::asio::any_io_executor& reactor, Wakes& wakes, os::FileResult<os::FileDescriptor> opened,
            Listener& listener)
      : KernelLog(reactor, wakes, std::move(opened), listener, Options{}) {}

  void arm(const Arming&) override {}
  [[nodiscard]] std::vector<SourceStatus> status() const override;
  [[nodiscard]] bool works() const { return file_.is_open(); }

 private:
  void wait();
  void rest();
  void drain();
  [[nodiscard]] bool read_one();

  Notifier notifier_;
  Listener& listener_;
  Options options_;
  boost::asio::posix::stream_descriptor file_;
  boost::asio::steady_timer timer_;
  std::string why_off_;
  core::OomLog log_;
  std::uint64_t kills_ = 0;
  std::uint64_t overruns_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace evictd::wake
