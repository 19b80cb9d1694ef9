#pragma once
#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "wake/notifier.hpp"
#include "wake/source.hpp"

namespace evictd::wake {

/// Tells whose files changed: inotify on every directory of the pods' volumes and logs, so that what was measured of a
/// pod is known to be out of date the moment it writes. Events only mark pods; how often that leads to measuring is for
/// others to decide.
///
/// Watches come and go with pods and with directories. Where the kernel gives no more of them
/// (fs.inotify.max_user_watches), or its queue overflowed, every pod counts as changed, at the latest at the next
/// arm() with other pods. On the reactor.
class PodFilesWatch final : public Source {
 public:
  /// `on_change` is called with a pod's uid, once for all of its changes that came together, at most every 100 ms.
  PodFilesWatch(boost::asio::any_io_executor reactor, Wakes& wakes,
                std::function<void(const std::string& uid)> on_change);

  /// Makes `arming.files` the watched pods. Directories that did not exist are looked for again when it is another
  /// list.
  void arm(const Arming& arming) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

  [[nodiscard]] std::size_t watches() const { return owners_.size(); }

 private:
  struct Watched {
    std::string uid;
    std::filesystem::path directory;
  };

  void sync(const std::vector<PodFiles>& pods);
  bool watch_tree(const std::string& uid, const std::filesystem::path& root);
  void wait();
  void read_events(std::size_t size);
  void all_changed();

  Notifier notifier_;
  std::function<void(const std::string& uid)> on_change_;
  std::shared_ptr<const std::vector<PodFiles>> files_;
  boost::asio::posix::stream_descriptor inotify_;
  boost::asio::steady_timer pause_;
  std::map<int, Watched> owners_;     // by watch descriptor
  std::set<std::string> incomplete_;  // pods with directories that could not be watched
  alignas(8) std::array<char, 16 * 1024> buffer_{};
};

}  // namespace evictd::wake
