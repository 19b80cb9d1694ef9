#include "agent/disk_wakes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace evictd::agent {

DiskWakes::DiskWakes(node::NodeDisk& disk, wake::Wakes& wakes, DecisionLog& log, const Clock& clock)
    : disk_{disk}, wakes_{wakes}, log_{log}, clock_{clock} {
  disk_.listen(this);
}

DiskWakes::~DiskWakes() { disk_.listen(nullptr); }

void DiskWakes::disks_settled() {
  for (auto& reason : std::exchange(reasons_, {})) wakes_.notify(std::move(reason));
}

void DiskWakes::disk_fell_silent(const std::string& which, const Error& error) {
  log_.source_degraded(which, error);
  wakes_.notify({core::WakeSource::Disk, which + " does not answer", clock_.now()});
}

void DiskWakes::disk_answers_again(const std::string& which, const std::string& what) {
  log_.source_recovered(which, what);
  wakes_.notify({core::WakeSource::Disk, which + " answers again", clock_.now()});
}

void DiskWakes::passed(const wake::Wake& wake) {
  const auto latest = std::ranges::max(wake.reasons, {}, &wake::Reason::latest).latest;
  if (!disk_.read_since(latest)) return;
  for (const auto& reason : wake.reasons) core::add_reason(reasons_, reason);
}

}  // namespace evictd::agent
