#include "node/node_disk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "async/side_thread.hpp"
#include "async/sleep.hpp"

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

/// One file system under two names is read by the name of nodefs. That another one was mounted for the images meanwhile
/// is known so much later: a runtime that runs goes on with the files that it has.
constexpr core::Duration longest_shared = std::chrono::minutes(1);

bool both_answered(const DiskReader::Reading* nodefs, const DiskReader::Reading* imagefs) {
  return nodefs != nullptr && nodefs->result && imagefs != nullptr && imagefs->result;
}

/// Both have answered, and are one file system.
bool are_one(const DiskReader::Reading* nodefs, const DiskReader::Reading* imagefs) {
  return both_answered(nodefs, imagefs) && nodefs->result->device == imagefs->result->device;
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

/// One of the two, with the worker that reads it.
class NodeDisk::FileSystem final : private DiskReader::Listener {
 public:
  FileSystem(NodeDisk& disk, std::string which, std::filesystem::path path, DiskReader::Read read)
      : disk_{disk},
        which_{std::move(which)},
        path_{std::move(path)},
        reader_{disk.reactor_, disk.make_worker_(disk.reactor_, "disk " + which_), std::move(read), *this,
                disk.patience_} {}

  [[nodiscard]] DiskReader& reader() { return reader_; }

 private:
  void answered() override { disk_.answered(); }
  void fell_silent() override {
    if (disk_.listener_ != nullptr)
      disk_.listener_->disk_fell_silent(
          which_, Error{fmt::format("no answer from {} for {}; its signals are not measured until it answers",
                                    path_.native(), core::to_string(disk_.patience_))});
    disk_.answered();
  }
  void answers_again(core::Duration after) override {
    if (disk_.listener_ != nullptr)
      disk_.listener_->disk_answers_again(
          which_, fmt::format("it answers again, after {}",
                              core::to_string(std::chrono::round<std::chrono::milliseconds>(after))));
  }

  NodeDisk& disk_;
  std::string which_;
  std::filesystem::path path_;
  DiskReader reader_;
};

NodeDisk::NodeDisk(asio::any_io_executor reactor, const config::NodeSettings& settings, Read read,
                   core::Duration patience, MakeWorker make_worker)
    : reactor_{std::move(reactor)},
      kubelet_root_{settings.kubelet_root},
      read_{std::move(read)},
      patience_{patience},
      make_worker_{std::move(make_worker)},
      changed_{reactor_, asio::steady_timer::time_point::max()},
      nodefs_{std::make_unique<FileSystem>(*this, "nodefs", kubelet_root_, [read = read_, path = kubelet_root_] {
        return read_or_parent(read, path);
      })} {}

NodeDisk::~NodeDisk() = default;

std::unique_ptr<async::Worker> NodeDisk::make_side_thread(const asio::any_io_executor& reactor,
                                                          const std::string& name) {
  return std::make_unique<async::SideThread>(reactor, name);
}

Result<void> NodeDisk::set_imagefs(const std::optional<std::filesystem::path>& path) {
  if (path == images_) return {};
  std::unique_ptr<FileSystem> imagefs;
  try {
    if (path)
      imagefs =
          std::make_unique<FileSystem>(*this, "imagefs", *path, [read = read_, path = *path] { return read(path); });
  } catch (const std::system_error& error) {
    return fail(fmt::format("{}: no thread to read it: {}", path->native(), error.code().message()));
  }
  images_ = path;
  imagefs_ = std::move(imagefs);
  if (imagefs_) imagefs_->reader().ask(core::Instant::clock::now());
  changed_.cancel();
  return {};
}

bool NodeDisk::read_since(core::Instant since) {
  nodefs_->reader().ask(since);
  if (needs_imagefs(since)) imagefs_->reader().ask(since);
  if (is_settled(since)) return false;
  awaited_ = std::min(awaited_.value_or(since), since);
  return true;
}

void NodeDisk::refresh() {
  nodefs_->reader().refresh();
  if (imagefs_) imagefs_->reader().refresh();
}

bool NodeDisk::is_settled(core::Instant since) const {
  return nodefs_->reader().is_settled(since) && (!needs_imagefs(since) || imagefs_->reader().is_settled(since));
}

/// Whether it has to be read for itself to know what it holds at that time.
bool NodeDisk::needs_imagefs(core::Instant since) const {
  if (!imagefs_) return false;
  const auto* imagefs = imagefs_->reader().latest();
  return !are_one(nodefs_->reader().latest(), imagefs) || since - imagefs->begun >= longest_shared;
}

void NodeDisk::answered() {
  const auto [nodefs, imagefs] = latest();
  if (both_answered(nodefs, imagefs)) layout_ = core::FilesystemLayout{.dedicated_imagefs = !are_one(nodefs, imagefs)};
  if (has_imagefs() && are_one(nodefs, imagefs)) one_until_ = nodefs->begun;
  changed_.cancel();
  if (awaited_ && needs_imagefs(*awaited_)) imagefs_->reader().ask(*awaited_);  // they are not one any more
  if (!awaited_ || !is_settled(*awaited_)) return;
  awaited_.reset();
  if (listener_ != nullptr) listener_->disks_settled();
}

asio::awaitable<void> NodeDisk::read_now() {
  const auto since = core::Instant::clock::now();
  nodefs_->reader().ask(since);
  if (imagefs_) imagefs_->reader().ask(since);
  while (!is_settled(since)) co_await async::wait(changed_);
}

void NodeDisk::look(Signal signal, std::move_only_function<void()> then) {
  reader_of(signal).look(static_cast<int>(signal), std::move(then));
}

DiskReader& NodeDisk::reader_of(Signal signal) const {
  return is_of_nodefs(signal) || !has_imagefs() ? nodefs_->reader() : imagefs_->reader();
}

/// Whether it is known and has answered, or is known not to.
bool NodeDisk::has_imagefs() const { return imagefs_ && imagefs_->reader().is_settled(core::Instant::min()); }

/// Of one file system under two names both have the newer reading: its signals must not tell different things. Nor does
/// one of the names tell what is older than that, once they are not known to be one any more.
NodeDisk::Readings NodeDisk::latest() const {
  const auto* nodefs = nodefs_->reader().latest();
  const auto* imagefs = has_imagefs() ? imagefs_->reader().latest() : nullptr;
  if (are_one(nodefs, imagefs)) {
    const auto* newer = nodefs->begun > imagefs->begun ? nodefs : imagefs;
    return {newer, newer};
  }
  const auto unless_outdated = [this](const DiskReader::Reading* reading) {
    return reading != nullptr && reading->begun < one_until_ ? nullptr : reading;
  };
  return {unless_outdated(nodefs), unless_outdated(imagefs)};
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
