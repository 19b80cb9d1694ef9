#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "async/worker.hpp"
#include "config/agent_configuration.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/filesystem_layout.hpp"
#include "core/observation.hpp"
#include "core/signal.hpp"
#include "node/disk_reader.hpp"
#include "node/filesystem.hpp"
#include "node/signal_reader.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// The disk signals of the node.
///
/// nodefs is the file system of `node.kubeletRoot`, or of its nearest parent where that directory does not exist.
/// imagefs is where the runtime keeps images; until it has said so, and that was read, imagefs is not measured, for a
/// disk of its own has other numbers than nodefs (kubelet: no pass before it is known). containerfs, the file system of
/// writable layers, is imagefs: containerd keeps both together.
///
/// A disk may take for ever to answer, so each of the two is read beside the reactor (DiskReader), and what is had here
/// at once is its last reading. One that does not answer is not measured: its signals have no observation, whatever
/// it said before. Where both are one file system, that of nodefs alone is read for most of a minute. On the reactor.
class NodeDisk final : public SignalReader {
 public:
  /// statfs(2) of a path. Called by threads beside the reactor, by two at a time.
  using Read = std::function<os::FileResult<FilesystemReading>(const std::filesystem::path&)>;

  /// Makes what reads one of them, with the name that ps(1) shows. Throws std::system_error where no thread can be had.
  using MakeWorker = std::move_only_function<std::unique_ptr<async::Worker>(const boost::asio::any_io_executor& reactor,
                                                                            const std::string& name)>;

  /// Called on the reactor. `which`: "nodefs" or "imagefs".
  class Listener {
   public:
    /// What read_since() asked for is there, or cannot be had.
    virtual void disks_settled() = 0;
    virtual void disk_fell_silent(const std::string& which, const Error& error) = 0;
    virtual void disk_answers_again(const std::string& which, const std::string& what) = 0;

   protected:
    ~Listener() = default;
  };

  /// `read`, `patience`, `make_worker`: other ones for tests. Throws what `make_worker` does.
  NodeDisk(boost::asio::any_io_executor reactor, const config::NodeSettings& settings, Read read = read_filesystem,
           core::Duration patience = DiskReader::patience, MakeWorker make_worker = make_side_thread);
  NodeDisk(const NodeDisk&) = delete;
  NodeDisk& operator=(const NodeDisk&) = delete;
  ~NodeDisk() override;

  /// Who is to know, and outlives this or takes its leave: null. One listener.
  void listen(Listener* listener) { listener_ = listener; }

  /// The mount point or directory that the runtime names (CRI: ImageFsInfo); absent: not known. Fails where no thread
  /// can be had to read it: then all stays as it was, for another call.
  [[nodiscard]] Result<void> set_imagefs(const std::optional<std::filesystem::path>& path);

  /// Asks for readings that begin at `since` or later; the listener's `settled` tells when they are there. False, and
  /// nothing is told, where there is nothing to wait for. Who asks often is told of the first, so that nobody's asking
  /// keeps others waiting: whether it is new enough for the last, asking again tells.
  bool read_since(core::Instant since);
  /// Has both read, unless they are being read: for a caller that looks at the last reading, and will look again.
  void refresh();
  /// Reads both file systems anew. Returns once they have answered or are silent: mostly within a millisecond, at the
  /// latest after the patience.
  [[nodiscard]] boost::asio::awaitable<void> read_now();

  [[nodiscard]] std::span<const core::Signal> signals() const override;
  [[nodiscard]] bool takes_time() const override { return true; }
  /// Reads the file system of the signal. Never calls back where it stays silent.
  void look(core::Signal signal, std::move_only_function<void()> then) override;

  /// By the file systems' last readings, each with the time at which that reading began. What has not been read yet, or
  /// is silent, has neither an observation nor an error.
  [[nodiscard]] std::vector<Error> observe(core::Observations& observations, core::Instant now) override;
  /// By the last reading.
  [[nodiscard]] std::optional<std::int64_t> available(core::Signal signal) const override;

  /// As it was when both file systems could be read for the last time: dedicated where the devices differ. Absent: they
  /// could not be read yet.
  [[nodiscard]] std::optional<core::FilesystemLayout> layout() const { return layout_; }

 private:
  class FileSystem;
  [[nodiscard]] static std::unique_ptr<async::Worker> make_side_thread(const boost::asio::any_io_executor& reactor,
                                                                       const std::string& name);
  [[nodiscard]] DiskReader& reader_of(core::Signal signal) const;
  [[nodiscard]] bool has_imagefs() const;
  struct Readings {
    const DiskReader::Reading* nodefs;  // null where there is none
    const DiskReader::Reading* imagefs;
  };
  [[nodiscard]] Readings latest() const;
  [[nodiscard]] bool is_settled(core::Instant since) const;
  [[nodiscard]] bool needs_imagefs(core::Instant since) const;
  void answered();

  boost::asio::any_io_executor reactor_;
  std::filesystem::path kubelet_root_;
  Read read_;
  core::Duration patience_;
  MakeWorker make_worker_;
  std::optional<std::filesystem::path> images_;
  Listener* listener_ = nullptr;
  std::optional<core::Instant> awaited_;  // the earliest of read_since() that was not told
  std::optional<core::FilesystemLayout> layout_;
  core::Instant one_until_ = core::Instant::min();  // of the newest reading that was of both
  boost::asio::steady_timer changed_;               // never expires: cancelled when a disk answers or falls silent
  std::unique_ptr<FileSystem> nodefs_;
  std::unique_ptr<FileSystem> imagefs_;  // null until the runtime names one
};

}  // namespace evictd::node
