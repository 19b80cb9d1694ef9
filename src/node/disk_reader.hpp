#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "async/worker.hpp"
#include "core/duration.hpp"
#include "node/filesystem.hpp"
#include "os/file_error.hpp"

namespace evictd::node {

/// One file system, read beside the reactor: by a worker of its own, so that one that does not answer holds up no
/// other, and never by more than one call at a time. On the reactor.
class DiskReader {
 public:
  /// Called by the worker; may block for ever.
  using Read = std::function<os::FileResult<FilesystemReading>()>;

  struct Reading {
    os::FileResult<FilesystemReading> result;
    core::Instant begun;  ///< the reading is no older than this
  };

  /// A disk that has not answered for so long is silent: its last reading is not believed any more. A disk that is
  /// busy answers statvfs(2) from memory; one that has to read first takes seconds only when it is about to fail. Well
  /// above that, and well below the interval at which the node is looked at without a reason (10 s).
  static constexpr core::Duration patience = std::chrono::seconds(3);

  /// Called on the reactor.
  class Listener {
   public:
    /// A reading came.
    virtual void answered() = 0;
    /// Once, until it answers.
    virtual void fell_silent() = 0;
    /// After so long; before answered().
    virtual void answers_again(core::Duration after) = 0;

   protected:
    ~Listener() = default;
  };

  /// `worker`: nothing else is done by it. The listener must outlive this. `patience`: for tests.
  DiskReader(const boost::asio::any_io_executor& reactor, std::unique_ptr<async::Worker> worker, Read read,
             Listener& listener, core::Duration patience = DiskReader::patience);

  /// Asks for a reading that begins at `since` or later. One that does already suffices.
  void ask(core::Instant since);
  /// Asks for a reading, unless one is under way.
  void refresh();
  /// The same, and calls back once it came. At most one caller for each key waits: the last one.
  void look(int key, std::move_only_function<void()> then);

  /// The last reading; null before the first one, and while the disk is silent.
  [[nodiscard]] const Reading* latest() const { return reading_ && !silent_ ? &*reading_ : nullptr; }
  [[nodiscard]] bool is_silent() const { return silent_; }
  /// Whether there is nothing to wait for: the reading is no older than that, or none can be had.
  [[nodiscard]] bool is_settled(core::Instant since) const { return silent_ || (reading_ && reading_->begun >= since); }

 private:
  struct Waiting {
    int key;
    std::move_only_function<void()> then;
  };

  void begin();
  void end(os::FileResult<FilesystemReading> result);

  std::unique_ptr<async::Worker> worker_;
  std::shared_ptr<const Read> read_;
  Listener& listener_;
  core::Duration patience_;
  boost::asio::steady_timer timer_;
  std::optional<Reading> reading_;
  std::optional<core::Instant> begun_;  // of the reading under way
  core::Instant wanted_ = core::Instant::min();
  bool silent_ = false;
  std::vector<Waiting> waiting_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // an expired timer's handler may outlive this
};

}  // namespace evictd::node
