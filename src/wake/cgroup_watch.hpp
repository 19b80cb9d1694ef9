#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/inotify.hpp"
#include "wake/source.hpp"
#include "wake/wakes.hpp"

namespace evictd::wake {

/// Told that cgroups came or went below the pods' cgroup: once for all changes that came together, before the pass. On
/// the reactor.
class CgroupListener {
 public:
  virtual void cgroups_changed() = 0;

 protected:
  ~CgroupListener() = default;
};

/// Tells when cgroups appear or go below the pods' cgroup: a pod that was started this moment is known this moment, not
/// at the next listing.
///
/// inotify on the node's cgroup and those between it and the pods' (so that a pods cgroup that comes later is found),
/// on the pods' cgroup and on what is two levels below it at most: QoS classes and pods. What came is looked at, and
/// the whole tree where one above the pods' changed, the kernel's queue was full, or not all could be watched. A change
/// after a quiet time is looked at at once; changes within 25 ms of a look are looked at together once these are over.
///
/// The watch of a cgroup that went is taken back: cgroupfs does not end it (seen on Linux 6.18), and how many a user
/// has is limited.
class CgroupWatch final : public Source, private os::Inotify::Listener {
 public:
  /// The listener must outlive this. Without inotify (EMFILE) it is never told: then pods are found by listing alone.
  CgroupWatch(const boost::asio::any_io_executor& reactor, Wakes& wakes, std::filesystem::path node,
              std::filesystem::path pods, CgroupListener& listener);

  /// Tries again what could not be watched.
  void arm(const Arming&) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  /// A directory whose directories are watched.
  struct Place {
    std::filesystem::path directory;
    int levels;                                         // below those in it that are watched as well
    std::map<std::string, int, std::less<>> watches{};  // of those in it, by their names
  };

  void watch_tree();
  void watch_below(int watch, const std::filesystem::path& directory, int levels);
  void see(Place& place, const std::string& name);
  void forget(int watch);
  [[nodiscard]] std::optional<int> watch(const std::filesystem::path& directory);
  [[nodiscard]] bool watch_above(const std::filesystem::path& directory);
  void on_event(const os::Inotify::Event& event) override;
  void on_batch_end() override;
  void tell();

  Notifier notifier_;
  std::filesystem::path node_;
  std::filesystem::path pods_;
  CgroupListener& listener_;
  os::Inotify inotify_;
  std::map<std::filesystem::path, int> above_;     // watches: from the node's cgroup down to the pods'
  std::map<int, Place> places_;                    // by watch: the pods' cgroup and those of QoS classes
  std::vector<std::pair<int, std::string>> came_;  // since the last look: in which of these, and by what name
  bool changed_ = false;                           // since then, anything
  bool look_at_all_ = false;                       // at the next look, at the whole tree
  bool open_ = false;
  bool failed_ = false;    // to watch something that is there
  bool complete_ = false;  // all there is, is watched, and the pods' cgroup is there
};

}  // namespace evictd::wake
