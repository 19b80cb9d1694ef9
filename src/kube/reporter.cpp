#include "kube/reporter.hpp"

#include <chrono>
#include <utility>

#include "async/sleep.hpp"
#include "core/duration.hpp"
#include "core/pressure.hpp"
#include "core/signal.hpp"
#include "kube/pod_objects.hpp"
#include "kube/report_options.hpp"
#include "kube/retry_delay.hpp"
#include "kube/wall_time.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace evictd::kube {
namespace {

using os::now;
WallTime wall_now() { return std::chrono::system_clock::now(); }

}  // namespace

Reporter::Reporter(const asio::any_io_executor& reactor, ReportOptions options, Send send, Tell tell, Random random)
    : queue_{std::move(options), std::move(random), std::move(tell)}, send_{std::move(send)}, timer_{reactor} {}

void Reporter::evicted(Eviction eviction) {
  if (queue_.evicted(std::move(eviction), now())) timer_.cancel();
}

void Reporter::seen(std::string_view uid, std::string_view phase, std::string_view reason) {
  if (queue_.seen(uid, phase, reason, now())) timer_.cancel();
}

/// What waited behind a status that is not written any more may be due.
void Reporter::returned(std::string_view uid) {
  queue_.returned(uid, now());
  timer_.cancel();
}

void Reporter::threshold_met(std::string_view resource) {
  queue_.threshold_met(resource, now(), wall_now());
  timer_.cancel();
}

void Reporter::node_conditions(const core::NodeConditions& conditions) {
  queue_.node_conditions(conditions, now(), wall_now());
  timer_.cancel();
}

/// A shutdown that an earlier evictd told of already began when it began.
void Reporter::node_shutdown(const NodeShutdown& shutdown) {
  const bool began = shutdown.pending && shutdown.begun;
  queue_.node_shutdown(shutdown, now(), began ? wall_time_of(*shutdown.begun) : wall_now());
  timer_.cancel();
}

asio::awaitable<void> Reporter::run() {
  for (;;) {
    if (auto request = queue_.next(now(), wall_now())) {
      const auto response = co_await send_(*std::move(request));
      queue_.answered(response, now());
      continue;
    }
    // A report that is queued cancels the wait.
    timer_.expires_at(queue_.due().value_or(now() + 1h));
    co_await async::wait(timer_);
  }
}

asio::awaitable<void> Reporter::drain(core::Duration patience) {
  const auto give_up = now() + patience;
  while (queue_.waiting() > 0 && now() < give_up) co_await async::sleep(20ms);
}

}  // namespace evictd::kube
