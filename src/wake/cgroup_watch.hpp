#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "wake/inotify.hpp"
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
/// the whole tree where one above the pods changed or the kernel's queue was full. A change after a quiet time is
/// looked at at once; changes within 25 ms of a look are looked at together once these are over.
class CgroupWatch final : public Source, private Inotify::Listener {
 public:
  /// The listener must outlive this. Without inotify (EMFILE) it is never told: then pods are found by listing alone.
  CgroupWatch(const boost::asio::any_io_executor& reactor, Wakes& wakes, std::filesystem::path node,
              std::filesystem::path pods, CgroupListener& listener);

  /// Tries again what could not be watched.
  void arm(const Arming&) override;
  [[nodiscard]] std::vector<SourceStatus> status() const override;

 private:
  /// A directory, and how many levels below those in it are watched.
  struct Place {
    std::filesystem::path directory;
    int levels;
  };

  void watch_tree();
  void watch_below(int watch, Place place);
  void see(const std::filesystem::path& found, int levels);
  [[nodiscard]] std::optional<int> watch(const std::filesystem::path& directory);
  [[nodiscard]] bool watch_above(const std::filesystem::path& directory);
  void on_event(const Inotify::Event& event) override;
  void on_batch_end() override;
  void tell();

  Notifier notifier_;
  std::filesystem::path node_;
  std::filesystem::path pods_;
  CgroupListener& listener_;
  Inotify inotify_;
  std::set<int> above_;          // watches of the node's cgroup and those between it and the pods'
  std::map<int, Place> places_;  // by watch: the pods' cgroup and those of QoS classes
  std::vector<Place> came_;      // directories since the last look
  bool lost_ = false;            // since then: which they were
  bool open_ = false;
  bool failed_ = false;    // to watch something that is there
  bool complete_ = false;  // all there is, is watched, and the pods' cgroup is there
};

}  // namespace evictd::wake
