#include "agent/node_observer.hpp"

#include <utility>

#include "core/signal.hpp"
#include "os/log.hpp"

namespace evictd::agent {

Result<node::NodeMemoryReading> NodeObserver::read(core::Instant now) {
  std::set<std::string> complaints;
  auto reading = memory_.read(now);
  if (!reading) {
    complaints.insert(reading.error().message);
  } else {
    const auto pids = pids_.observe(now);
    if (pids) reading->observations[core::Signal::PidAvailable] = *pids;
    if (!pids) complaints.insert(pids.error().message);
    for (const auto& error : disk_.observe(reading->observations)) complaints.insert(error.message);
    if (reading->pods_error) complaints.insert(reading->pods_error->message);
  }
  complain(std::move(complaints));
  return reading;
}

boost::asio::awaitable<Result<node::NodeMemoryReading>> NodeObserver::read_with_disks() {
  co_await disk_.read_now();
  co_return read(core::Instant::clock::now());
}

core::Observations NodeObserver::with_memory_now(core::Observations observations, core::Instant now) const {
  using enum core::Signal;
  for (const auto signal : {MemoryAvailable, AllocatableMemoryAvailable}) {
    auto& observation = observations[signal];
    if (!observation) continue;
    if (const auto available = memory_.available(signal)) {
      observation->available = *available;
      observation->time = now;
    }
  }
  return observations;
}

void NodeObserver::complain(std::set<std::string> messages) {
  for (const auto& message : messages)
    if (!complaints_.contains(message)) os::log_error("{}", message);
  complaints_ = std::move(messages);
}

}  // namespace evictd::agent
