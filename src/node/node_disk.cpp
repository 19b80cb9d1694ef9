#include "node/node_disk.hpp"

#include <cstdint>

#include "core/signal.hpp"
#include "node/file_error.hpp"

namespace evictd::node {
namespace {

using core::Signal;

struct SignalPair {
  Signal available;
  Signal inodes_free;
};

constexpr SignalPair nodefs_signals{Signal::NodefsAvailable, Signal::NodefsInodesFree};
constexpr SignalPair imagefs_signals{Signal::ImagefsAvailable, Signal::ImagefsInodesFree};
constexpr SignalPair containerfs_signals{Signal::ContainerfsAvailable, Signal::ContainerfsInodesFree};

void observe_signals(const SignalPair& signals, const FileResult<FilesystemReading>& reading, core::Instant now,
                     core::Observations& observations) {
  observations[signals.available].reset();
  observations[signals.inodes_free].reset();
  if (!reading) return;
  observations[signals.available] =
      core::Observation{.available = reading->available, .capacity = reading->capacity, .time = now};
  if (reading->inodes)
    observations[signals.inodes_free] =
        core::Observation{.available = reading->inodes->free, .capacity = reading->inodes->total, .time = now};
}

}  // namespace

NodeDisk::NodeDisk(const config::NodeSettings& settings) : nodefs_(settings.kubelet_root) {}

FileResult<FilesystemReading> NodeDisk::read_nodefs() const {
  auto reading = read_filesystem(nodefs_);
  if (reading) return reading;
  for (auto path = nodefs_; !reading && reading.error().code == ENOENT && path.has_relative_path();) {
    path = path.parent_path();
    reading = read_filesystem(path);
  }
  return reading;
}

std::vector<Error> NodeDisk::observe(core::Instant now, core::Observations& observations) {
  std::vector<Error> errors;
  const auto nodefs = read_nodefs();
  if (!nodefs) errors.push_back(nodefs.error().in("nodefs (node.kubeletRoot)"));
  const auto imagefs = imagefs_ ? read_filesystem(*imagefs_) : nodefs;
  if (!imagefs && imagefs_) errors.push_back(imagefs.error().in("imagefs (as the runtime names it)"));

  observe_signals(nodefs_signals, nodefs, now, observations);
  observe_signals(imagefs_signals, imagefs, now, observations);
  observe_signals(containerfs_signals, imagefs, now, observations);
  if (nodefs && imagefs) layout_.dedicated_imagefs = nodefs->device != imagefs->device;
  return errors;
}

std::optional<std::int64_t> NodeDisk::available(core::Signal signal) const {
  const bool nodefs = signal == nodefs_signals.available || signal == nodefs_signals.inodes_free || !imagefs_;
  const auto reading = nodefs ? read_nodefs() : read_filesystem(*imagefs_);
  if (!reading) return std::nullopt;
  if (core::resource_of(signal) == core::Resource::EphemeralStorage) return reading->available;
  return reading->inodes ? std::optional{reading->inodes->free} : std::nullopt;
}

}  // namespace evictd::node
