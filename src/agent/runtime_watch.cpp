#include "agent/runtime_watch.hpp"

#include <chrono>
#include <utility>

#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "core/duration.hpp"
#include "cri/image_filesystem.hpp"
#include "cri/warm_up.hpp"
#include "os/log.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::agent {

RuntimeWatch::RuntimeWatch(asio::any_io_executor reactor, Parts parts)
    : reactor_{reactor}, parts_{parts}, timer_{std::move(reactor)} {}

void RuntimeWatch::start() {
  async::spawn(reactor_, watch_images(), "watching the images");
  parts_.runtime.watch(*this);
}

void RuntimeWatch::stop() {
  stopping_ = true;
  timer_.cancel();
}

void RuntimeWatch::presence_changed(const cri::Presence& presence) {
  if (!presence.present) return os::log_warning("{}; waiting for it", presence.detail);
  name_ = presence.detail;
  os::log_info("{} answers at {}", presence.detail, parts_.runtime.endpoint());
  async::spawn(reactor_, look_at_images(), "listing the images");
  async::spawn(reactor_, find_image_filesystem(), "looking for the image filesystem");
  async::spawn(reactor_, cri::warm_up(parts_.runtime), "warming up the runtime");
  parts_.pods.changed();
  parts_.events.appeared(presence.detail);
}

/// Which images are old enough to go, and in what order, follows from when they were seen. (kubelet 1.36,
/// image_gc_manager.go: Start detects every 5 min)
asio::awaitable<void> RuntimeWatch::watch_images() {
  while (!stopping_) {
    if (parts_.runtime.connected()) {
      co_await look_at_images();
      co_await parts_.reclaimer.observe_logs();
      if (!has_found_images()) co_await find_image_filesystem();
    }
    timer_.expires_after(has_found_images() ? core::Duration{5min} : core::Duration{10s});
    co_await async::wait(timer_);
  }
}

/// What cannot be looked at now is at the next look; a reclaim looks as well, and says what it could not.
asio::awaitable<void> RuntimeWatch::look_at_images() { static_cast<void>(co_await parts_.reclaimer.observe_images()); }

asio::awaitable<void> RuntimeWatch::find_image_filesystem() {
  const auto found = co_await cri::image_filesystem(parts_.runtime);
  if (!found) {
    keep_looking(found.error().message + "; until it is known, imagefs and containerfs are not measured");
    co_return;
  }
  if (const auto is_set = parts_.disk.set_imagefs(found->images); !is_set) {
    keep_looking(is_set.error().message + "; it is tried again every 10 s");
    co_return;
  }
  error_.clear();
  parts_.alarms.watch_images(found->images);
  parts_.alarms.notify({core::WakeSource::Runtime, "the image file system is known", parts_.clock.now()});
}

/// Says it once: it is asked again every 10 s.
void RuntimeWatch::keep_looking(std::string error) {
  if (error != error_) {
    os::log_warning("{}", error);
    timer_.cancel();  // the next look may have been due in minutes
  }
  error_ = std::move(error);
}

bool RuntimeWatch::has_found_images() const { return parts_.alarms.watches_images() && error_.empty(); }

}  // namespace evictd::agent
