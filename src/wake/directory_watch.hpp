#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/worker.hpp"
#include "core/duration.hpp"
#include "core/wake.hpp"
#include "os/file_error.hpp"
#include "os/inotify.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

struct DirectoryWatchOptions {
  core::WakeSource source = core::WakeSource::Files;  ///< as wake-ups name it
  std::string detail;                                 ///< of its wake-ups: "images or layers came or went"
  core::Duration interval = std::chrono::seconds(1);  ///< between two wake-ups
  /// For files that are read whole: one that is written anew in its place is empty at first, and one that an editor
  /// replaces is missing for a moment. A change is told once its writer has closed the file and nothing has changed for
  /// this time, but after eight times as long at the latest. In place of `interval`.
  /// Zero: each write is told at once, also those of a program that keeps its file open.
  core::Duration settle{};
  /// Whether what has this name in one of the directories matters; empty: everything does.
  std::function<bool(std::string_view name)> matters{};
  /// By whom directories are looked for, since a disk may not answer; those who share one wait for each other. Null:
  /// one of its own.
  std::shared_ptr<async::Worker> worker{};
};

/// Tells when something changes in a few directories, without what is below them, by inotify: those of the image file
/// system, of configuration files, of manifests.
class DirectoryWatch final : public Source, private os::Inotify::Listener {
 public:
  using Directories = std::function<std::vector<std::filesystem::path>(const Arming&)>;

  /// `directories` says which, at each arm(); those that do not exist are looked for again, and a change once they do.
  /// They are looked for beside the reactor. What changed until then is not known, so `on_change` is called once
  /// they are watched or found missing, without a pass. `on_change` may be empty; where a pass follows it is called
  /// before the pass.
  DirectoryWatch(const boost::asio::any_io_executor& reactor, Wakes& wakes, DirectoryWatchOptions options,
                 Directories directories, std::function<void()> on_change = {});

  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  void on_event(const os::Inotify::Event& event) override;
  void on_batch_end() override;
  void change();
  void tell();
  [[nodiscard]] bool is_wanted(const std::filesystem::path& directory) const;
  void look();
  /// A directory that was looked for, and the number of its watch.
  using Found = std::vector<std::pair<std::filesystem::path, os::FileResult<int>>>;
  void looked(const Found& found);

  DirectoryWatchOptions options_;
  Notifier notifier_;
  Directories directories_;
  std::function<void()> on_change_;
  os::Inotify inotify_;
  boost::asio::steady_timer timer_;
  std::optional<core::Instant> changed_since_;  // a change will be told once nothing has changed for `settle`
  bool open_ = false;
  bool changed_ = false;  // in this batch, something that matters
  std::map<std::filesystem::path, int> watches_;
  std::set<std::filesystem::path> missing_;  // once they are there, so may be what was put into them
  std::vector<std::filesystem::path> wanted_;
  std::optional<core::Instant> looking_;                        // since when the worker has looked for directories
  std::set<int> lost_meanwhile_;                                // watches that ended while it did
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // what the worker does may outlive this
};

}  // namespace evictd::wake
