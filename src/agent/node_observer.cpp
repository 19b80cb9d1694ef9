#include "agent/node_observer.hpp"

#include <utility>

#include "core/signal.hpp"
#include "os/log.hpp"

namespace evictd::agent {

Result<node::NodeMemoryReading> NodeObserver::read(core::Instant now) {
  others_complaints_.clear();
  for (auto* reader : readers_)
    for (const auto& error : reader->observe(others_, now)) others_complaints_.insert(error.message);
  return with_others(memory_.read(now));
}

Result<node::NodeMemoryReading> NodeObserver::read_memory(core::Instant now) {
  return with_others(memory_.read(now, node::NodeMemory::Limits::known));
}

Result<node::NodeMemoryReading> NodeObserver::with_others(Result<node::NodeMemoryReading> reading) {
  auto complaints = others_complaints_;
  if (!reading) {
    complaints.insert(reading.error().message);
  } else {
    for (const auto* reader : readers_)
      for (const auto signal : reader->signals()) reading->observations[signal] = others_[signal];
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
  for (const auto signal : memory_.signals()) {
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
