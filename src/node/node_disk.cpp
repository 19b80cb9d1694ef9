#include "node/node_disk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "async/side_thread.hpp"

namespace asio = boost::asio;

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

void observe_signals(const SignalPair& signals, const DiskReader::Reading* reading, core::Observations& observations) {
  observations[signals.available].reset();
  observations[signals.inodes_free].reset();
  if (reading == nullptr || !reading->result) return;
  const auto& numbers = *reading->result;
  observations[signals.available] =
      core::Observation{.available = numbers.available, .capacity = numbers.capacity, .time = reading->begun};
  if (numbers.inodes)
    observations[signals.inodes_free] =
        core::Observation{.available = numbers.inodes->free, .capacity = numbers.inodes->total, .time = reading->begun};
}

bool is_of_nodefs(Signal signal) { return signal == nodefs_signals.available || signal == nodefs_signals.inodes_free; }

os::FileResult<FilesystemReading> read_or_parent(const NodeDisk::Read& read, std::filesystem::path path) {
  auto reading = read(path);
  while (!reading && reading.error().code == ENOENT && path.has_relative_path()) {
    path = path.parent_path();
    reading = read(path);
  }
  return reading;
}

}  // namespace

NodeDisk::NodeDisk(asio::any_io_executor reactor, const config::NodeSettings& settings, Read read,
                   core::Duration patience)
    : reactor_{std::move(reactor)},
      kubelet_root_{settings.kubelet_root},
      read_{std::move(read)},
      patience_{patience},
      changed_{reactor_, asio::steady_timer::time_point::max()},
      nodefs_{make_reader("nodefs", [read = read_, path = kubelet_root_] { return read_or_parent(read, path); })} {}

std::unique_ptr<DiskReader> NodeDisk::make_reader(const std::string& which, DiskReader::Read read) {
  return std::make_unique<DiskReader>(
      reactor_, std::make_unique<async::SideThread>(reactor_, "disk " + which), std::move(read),
      DiskReader::Listener{
          .answered = [this] { answered(); },
          .fell_silent =
              [this, which] {
                if (listener_.fell_silent)
                  listener_.fell_silent(
                      which,
                      Error{fmt::format("no answer from {} for {}; its signals are not measured until it answers",
                                        which == "nodefs" ? kubelet_root_.native() : images_->native(),
                                        core::to_string(patience_))});
                answered();
              },
          .spoke_again =
              [this, which](core::Duration after) {
                if (listener_.spoke_again)
                  listener_.spoke_again(
                      which, fmt::format("it answers again, after {}",
                                         core::to_string(std::chrono::round<std::chrono::milliseconds>(after))));
              }},
      patience_);
}

void NodeDisk::set_imagefs(const std::optional<std::filesystem::path>& path) {
  if (path == images_) return;
  images_ = path;
  imagefs_.reset();
  if (images_) imagefs_ = make_reader("imagefs", [read = read_, path = *images_] { return read(path); });
  if (imagefs_) imagefs_->ask(core::Instant::clock::now());
  changed_.cancel();
}

bool NodeDisk::read_since(core::Instant since) {
  nodefs_->ask(since);
  if (imagefs_) imagefs_->ask(since);
  if (is_settled(since)) return false;
  awaited_ = std::min(awaited_.value_or(since), since);
  return true;
}

void NodeDisk::refresh() {
  nodefs_->refresh();
  if (imagefs_) imagefs_->refresh();
}

bool NodeDisk::is_settled(core::Instant since) const {
  return nodefs_->is_settled(since) && (!imagefs_ || imagefs_->is_settled(since));
}

void NodeDisk::answered() {
  const auto [nodefs, imagefs] = latest();
  if (nodefs != nullptr && nodefs->result && imagefs != nullptr && imagefs->result)
    layout_.dedicated_imagefs = nodefs->result->device != imagefs->result->device;
  changed_.cancel();
  if (!awaited_ || !is_settled(*awaited_)) return;
  awaited_.reset();
  if (listener_.settled) listener_.settled();
}

asio::awaitable<void> NodeDisk::read_now() {
  const auto since = core::Instant::clock::now();
  nodefs_->ask(since);
  if (imagefs_) imagefs_->ask(since);
  while (!is_settled(since)) co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void NodeDisk::look(Signal signal, std::function<void()> then) {
  reader_of(signal).look(static_cast<int>(signal), std::move(then));
}

DiskReader& NodeDisk::reader_of(Signal signal) const {
  return is_of_nodefs(signal) || !has_imagefs() ? *nodefs_ : *imagefs_;
}

/// Whether it is known and has answered, or is known not to.
bool NodeDisk::has_imagefs() const { return imagefs_ && imagefs_->is_settled(core::Instant::min()); }

/// Of one file system under two names both have the newer reading: its signals must not tell different things.
NodeDisk::Readings NodeDisk::latest() const {
  const auto* nodefs = nodefs_->latest();
  const auto* imagefs = has_imagefs() ? imagefs_->latest() : nodefs;
  const bool both = nodefs != nullptr && nodefs->result && imagefs != nullptr && imagefs->result;
  if (!both || nodefs->result->device != imagefs->result->device) return {nodefs, imagefs};
  const auto* newer = nodefs->begun > imagefs->begun ? nodefs : imagefs;
  return {newer, newer};
}

std::span<const Signal> NodeDisk::signals() const {
  static constexpr std::array own{Signal::NodefsAvailable,  Signal::ImagefsAvailable,  Signal::ContainerfsAvailable,
                                  Signal::NodefsInodesFree, Signal::ImagefsInodesFree, Signal::ContainerfsInodesFree};
  return own;
}

std::vector<Error> NodeDisk::observe(core::Observations& observations, core::Instant /*now*/) {
  std::vector<Error> errors;
  const auto [nodefs, imagefs] = latest();
  if (nodefs != nullptr && !nodefs->result) errors.push_back(nodefs->result.error().in("nodefs (node.kubeletRoot)"));
  if (imagefs != nodefs && imagefs != nullptr && !imagefs->result)
    errors.push_back(imagefs->result.error().in("imagefs (as the runtime names it)"));
  observe_signals(nodefs_signals, nodefs, observations);
  observe_signals(imagefs_signals, imagefs, observations);
  observe_signals(containerfs_signals, imagefs, observations);
  return errors;
}

std::optional<std::int64_t> NodeDisk::available(Signal signal) const {
  const auto readings = latest();
  const auto* reading = is_of_nodefs(signal) ? readings.nodefs : readings.imagefs;
  if (reading == nullptr || !reading->result) return std::nullopt;
  if (!core::is_counted(signal)) return reading->result->available;
  return reading->result->inodes ? std::optional{reading->result->inodes->free} : std::nullopt;
}

}  // namespace evictd::node
