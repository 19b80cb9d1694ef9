#include "agent/disk_wakes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace evictd::agent {

DiskWakes::DiskWakes(node::NodeDisk& disk, wake::Wakes& wakes, DecisionLog& log, const Clock& clock) : disk_{disk} {
  disk_.listen({.settled =
                    [this, &wakes] {
                      for (auto& reason : std::exchange(reasons_, {})) wakes.notify(std::move(reason));
                    },
                .fell_silent =
                    [&](const std::string& which, const Error& error) {
                      log.source_degraded(which, error);
                      wakes.notify({core::WakeSource::Disk, which + " does not answer", clock.now()});
                    },
                .spoke_again =
                    [&](const std::string& which, const std::string& what) {
                      log.source_recovered(which, what);
                      wakes.notify({core::WakeSource::Disk, which + " answers again", clock.now()});
                    }});
}

DiskWakes::~DiskWakes() { disk_.listen({}); }

void DiskWakes::passed(const wake::Wake& wake) {
  const auto latest = std::ranges::max(wake.reasons, {}, &wake::Reason::time).time;
  if (!disk_.read_since(latest)) return;
  for (const auto& reason : wake.reasons) {
    const bool known = std::ranges::any_of(reasons_, [&](const wake::Reason& waiting) {
      return waiting.source == reason.source && waiting.detail == reason.detail;
    });
    if (!known) reasons_.push_back(reason);
  }
}

}  // namespace evictd::agent
