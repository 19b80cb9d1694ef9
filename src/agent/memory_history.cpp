#include "agent/memory_history.hpp"

#include <algorithm>
#include <chrono>

#include "core/signal.hpp"

namespace evictd::agent {
namespace {

/// Over less than this a rate says more of the kernel's batches than of those who take memory: each processor keeps up
/// to some hundred KiB uncounted (memcg charge batches).
constexpr std::chrono::milliseconds shortest_between_samples{2};

}  // namespace

void MemoryHistory::observed(const node::NodeMemoryReading& reading, core::Instant now) {
  reclaimable_ = reading.node_level.reclaimable;
  observed(reading.observations, now);
}

void MemoryHistory::observed(const core::Observations& observations, core::Instant now) {
  const auto& memory = observations[core::Signal::MemoryAvailable];
  if (memory) take(memory->available, now);
}

void MemoryHistory::take(std::int64_t available, core::Instant now) {
  if (!since_) since_ = now;
  newest_ = MemorySample{now, available};
  if (recent_.empty() || now - recent_.back().time >= between_recent) {
    recent_.push_back(*newest_);
    while (now - recent_.front().time > recent_kept) recent_.pop_front();
  }
  if (!least_available_ || available < *least_available_) {
    least_available_ = available;
    reclaimable_at_least_ = reclaimable_;
  }
  if (last_ && now - last_->time < shortest_between_samples) return;
  if (last_ && available < last_->bytes) {
    const std::chrono::duration<double> time = now - last_->time;
    worst_.peak_fill_rate =
        std::max(worst_.peak_fill_rate, static_cast<double>(last_->bytes - available) / time.count());
  }
  last_ = newest_;
}

void MemoryHistory::released(core::Duration since_wake, std::int64_t threshold) {
  ++worst_.crossings;
  worst_.release_time = std::max(worst_.release_time, since_wake);
  if (least_available_) {
    worst_.overshoot = std::max(worst_.overshoot, threshold - *least_available_);
    if (*least_available_ > 0)
      worst_.reclaimable_share =
          std::max(worst_.reclaimable_share,
                   std::min(1.0, static_cast<double>(reclaimable_at_least_) / static_cast<double>(*least_available_)));
  }
  least_available_.reset();
}

std::vector<MemorySample> MemoryHistory::recent(core::Instant now) const {
  std::vector<MemorySample> samples;
  for (const auto& sample : recent_)
    if (now - sample.time <= recent_kept) samples.push_back(sample);
  if (newest_ && !samples.empty() && samples.back() != *newest_) samples.push_back(*newest_);
  return samples;
}

core::MemoryEvidence MemoryHistory::evidence(core::Instant now,
                                             const std::optional<core::ZoneWatermarks>& watermarks) const {
  auto evidence = worst_;
  if (since_) evidence.watched = now - *since_;
  evidence.watermarks = watermarks;
  return evidence;
}

}  // namespace evictd::agent
