#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "node/cgroup.hpp"
#include "wake/probe_cgroup.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Sees to it that the kernel still tells what it is asked to tell: crosses a level in a cgroup of its own now and
/// then, and waits for the word. Without one it registers anew, has every other source do the same, which is as good as
/// blind until then, begins a pass, and tests again at once. A second silence is reported and stays in the status.
///
/// It leaves the node alone while memory is short.
class SelfTest final : public Source, private ProbeCgroup::Listener {
 public:
  struct Options {
    std::string path;         ///< of the cgroup: it is made, and removed at the end
    core::Duration interval;  ///< from the end of one test to the next
    /// From the child's end. The kernel notifies at once; what is late is the loop.
    core::Duration patience = std::chrono::seconds(1);
  };

  /// `sources`: all of them, which have to register anew when the kernel was silent; it outlives this.
  SelfTest(boost::asio::any_io_executor reactor, Wakes& wakes, const node::CgroupHierarchy& hierarchy, Options options,
           const std::vector<std::unique_ptr<Source>>& sources);
  ~SelfTest() override;

  /// Registers anew what the kernel dropped.
  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  struct Running {
    core::Instant begin;
    bool crossed = false;                  // the child has ended
    std::optional<core::Duration> told{};  // how long after the beginning the kernel reported
  };

  bool keep_open();
  void after(core::Duration time, void (SelfTest::*what)());
  void begin();
  void look();
  void probe_crossed() override;
  bool silent();

  boost::asio::steady_timer timer_;
  Notifier notifier_;
  Options options_;
  const std::vector<std::unique_ptr<Source>>& sources_;
  ProbeCgroup probe_;
  std::optional<Running> running_;
  std::optional<core::Instant> silent_since_;  // the test that comes is the second after a silence
  std::optional<core::Duration> took_;         // the last test
  std::uint64_t passed_ = 0;
  bool was_registered_ = false;
  bool short_of_memory_ = false;
  std::string state_ = "waiting: no test yet";
};

}  // namespace evictd::wake
