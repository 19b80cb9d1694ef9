#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "wake/source.hpp"
#include "wake/tree_watch.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

struct PodFilesOptions {
  /// Between two wake-ups. A pod may write without a break; to measure its files anew once a second is soon enough for
  /// a disk.
  core::Duration interval = std::chrono::seconds(1);
  std::vector<std::filesystem::path> roots{};  ///< below which all pods' files are
  /// One mark a file system, which spares thousands of watches, where the kernel lets us. Otherwise inotify: one watch
  /// a directory.
  bool fanotify = true;
};

/// Tells when pods write, make or remove files in their volumes and logs. It only marks what to measure anew and begins
/// a pass, at most one an interval; how much was written, the measuring says.
///
/// What watches the files looks at disks that may not answer: it lives on a thread and a reactor of its own, and this
/// speaks to it by messages. Nothing waits for it when this goes.
class PodFilesWatch final : public Source {
 public:
  /// `on_change`: called with the uid of each pod that changed, before the pass.
  PodFilesWatch(boost::asio::any_io_executor reactor, Wakes& wakes, PodFilesOptions options,
                TreeWatch::OnChange on_change);
  ~PodFilesWatch() override;

  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  struct Side;  // outlives this where a disk holds it

  void heard();
  void tell();

  Notifier notifier_;
  TreeWatch::OnChange on_change_;
  core::Duration interval_;
  boost::asio::steady_timer timer_;
  bool resting_ = false;           // since the last wake-up, for the interval
  std::set<std::string> changed_;  // meanwhile
  std::shared_ptr<const WatchedPods> pods_;
  std::string description_;  // empty: nothing watches, for now or at all
  bool failed_to_open_ = false;
  std::uint64_t asked_ = 0;               // how many lists were handed over
  std::uint64_t answered_ = 0;            // and of which the last one was done
  core::Instant asked_at_{};              // the first that was not
  std::shared_ptr<PodFilesWatch*> self_;  // what the side sends looks whether this is still there
  std::shared_ptr<Side> side_;
};

}  // namespace evictd::wake
