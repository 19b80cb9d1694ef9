#include "app/kubelet_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "os/now.hpp"
#include "os/pidfd.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::app {
namespace {

constexpr core::Duration shortest_pause = 1s;  // a kubelet that was restarted is soon back
constexpr core::Duration longest_pause = 30s;

/// systemd starts a kubelet that ended every 10 s (kubeadm's unit: RestartSec=10).
constexpr core::Duration between_starts = 1min;

}  // namespace

KubeletWatch::KubeletWatch(asio::any_io_executor reactor, std::move_only_function<void()> look)
    : timer_{std::move(reactor)}, look_{std::move(look)}, pause_{shortest_pause} {}

void KubeletWatch::found(std::optional<std::int64_t> pid, bool is_known) {
  if (pid && !is_known) unknown_seen_ = os::now();
  if (pid != pid_) {
    pid_ = pid;
    process_.reset();
    if (!is_known) pause_ = shortest_pause;
    if (pid) watch(*pid);
  }
  if (process_ && is_known) return static_cast<void>(timer_.cancel());
  look_after(pause_);
  pause_ = std::min(pause_ * 2, longest_pause);
}

bool KubeletWatch::may_come_back(core::Instant now) const {
  return unknown_seen_ && now - *unknown_seen_ < between_starts;
}

void KubeletWatch::watch(std::int64_t pid) {
  auto pidfd = os::open_pidfd(static_cast<pid_t>(pid));
  if (!pidfd) return pid_.reset();  // it has ended since
  process_.emplace(timer_.get_executor(), pidfd.release());
  const std::weak_ptr alive{alive_};
  process_->async_wait(asio::posix::stream_descriptor::wait_read, [this, alive](boost::system::error_code error) {
    if (error || alive.expired()) return;
    pid_.reset();
    process_.reset();
    pause_ = shortest_pause;
    look_after(pause_);
  });
}

void KubeletWatch::look_after(core::Duration pause) {
  timer_.expires_after(pause);
  // Its word may be on the way when this goes.
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code error) {
    if (!error && !alive.expired()) look_();
  });
}

}  // namespace evictd::app
