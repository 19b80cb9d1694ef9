#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "os/file_error.hpp"
#include "os/inotify.hpp"
#include "wake/source.hpp"
#include "wake/tree_watch.hpp"

namespace evictd::wake {

/// TreeWatch by one inotify watch for each directory, added and removed as directories come and go. Works without
/// privileges, on any file system, as far as half of fs.inotify.max_user_watches goes: the other half is left to all
/// other daemons of this user. Pods decide how many directories and files they have, and how deep: one with more than
/// are looked at is watched in part, and what else it writes is seen when it is measured next (node.diskUsageInterval).
class InotifyTrees final : public TreeWatch, private os::Inotify::Listener {
 public:
  /// `limit`: the file that says how many watches a user may have.
  InotifyTrees(const boost::asio::any_io_executor& reactor, OnChange on_change,
               std::filesystem::path limit = "/proc/sys/fs/inotify/max_user_watches");
  [[nodiscard]] os::FileResult<void> open() { return inotify_.open(); }

  [[nodiscard]] os::FileResult<void> watch(const WatchedPods& pods) override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::size_t watches() const { return owners_.size(); }

  /// Of one pod.
  static constexpr std::size_t most_watches = 1024;
  /// That are looked at for directories when a pod's tree is found, and for all events that came together: a few
  /// milliseconds of the reactor's.
  static constexpr std::size_t most_entries = 10'000;
  /// Bytes below the pod's own directory, of one that is looked at: each that is watched, or waits for it, has its path
  /// in memory.
  static constexpr std::size_t longest_path = 512;

 private:
  struct Watched {
    std::string uid;
    std::string directory;
  };
  struct Pod {
    std::shared_ptr<const PodFiles> files{};
    bool complete = false;  // everything below them is watched as far as it may be, and all exist
    std::size_t watches = 0;
    bool has_more = false;  // than is watched
    bool behind = false;    // and in behind_
  };

  [[nodiscard]] os::FileResult<void> look_through(Pod& pod, const std::string& uid, std::size_t& entries_left);
  [[nodiscard]] os::FileResult<bool> add_tree(Pod& pod, const std::string& uid, const std::string& root,
                                              std::size_t& entries_left);
  static void lost_watch(Pod& pod, const std::string& directory);
  void forget(const std::function<bool(const std::string& uid)>& is_gone);
  void on_event(const os::Inotify::Event& event) override;
  void on_batch_end() override { report(); }
  void lost_events();
  void fall_behind(Pod& pod, const std::string& uid);
  void catch_up();
  void report();

  OnChange on_change_;
  std::filesystem::path limit_;
  std::size_t most_together_ = 0;  // watches of all pods, as of the last list
  os::Inotify inotify_;
  std::map<std::string, Pod, std::less<>> pods_;  // by uid
  std::map<int, Watched> owners_;                 // by watch
  std::set<std::string> changed_;                 // of the batch
  std::size_t entries_left_ = most_entries;       // for the batch
  std::deque<std::string> behind_;                // pods that have directories which were not looked at yet
};

}  // namespace evictd::wake
