#pragma once
#include <sys/types.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "wake/inotify_trees.hpp"
#include "wake/source.hpp"
#include "wake/tree_watch.hpp"

namespace evictd::wake {

/// TreeWatch by fanotify(7): one mark on the file system of the pods' directories tells of every change on it, so there
/// are no watches to add and remove however many directories there are. An event names its directory by a file handle
/// (FAN_REPORT_DFID_NAME, Linux 5.9), and the directory's path names the pod; what happens elsewhere on the file system
/// is dropped. A path leads through one mount: where several show the file system (a container's volumes), the
/// directory is looked for in each of those that `roots` are in. Where only others write, the queue is looked at less
/// and less often, down to once in two seconds: a file system that is always written to must not keep the reactor
/// awake.
///
/// Needs CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH, and a file system that can be marked: ext4, xfs and tmpfs can. The mark
/// holds the file system's mount: it cannot be unmounted while evictd runs. That would be wrong for file systems that
/// are mounted in a pod's directory (an emptyDir in memory): these are left to inotify.
class FanotifyTrees final : public TreeWatch {
 public:
  FanotifyTrees(const boost::asio::any_io_executor& reactor, OnChange on_change);
  ~FanotifyTrees() override;

  /// Marks the file systems of `roots`, below which all pods' directories will be; one that does not exist stands for
  /// its nearest parent. EPERM without the capabilities, EOPNOTSUPP, EXDEV or ENODEV where a file system has no
  /// handles.
  [[nodiscard]] os::FileResult<void> open(std::span<const std::filesystem::path> roots);

  [[nodiscard]] os::FileResult<void> watch(const WatchedPods& pods) override;
  [[nodiscard]] std::string describe() const override;

 private:
  /// A mount of a root, by which handles are opened.
  struct Mounted {
    std::uint64_t id;
    os::FileDescriptor directory;
  };
  struct Marked {
    dev_t device;
    std::array<int, 2> fsid;  // as events name it
    std::vector<Mounted> mounts{};
  };

  struct Pod {
    std::shared_ptr<const PodFiles> files{};
    std::shared_ptr<const PodFiles> mounted{};  // what of it lies on file systems of its own; null: nothing
    core::Instant mounts_looked_for_until{};
  };

  [[nodiscard]] os::FileResult<void> mark(const std::filesystem::path& root);
  [[nodiscard]] bool is_marked(const std::filesystem::path& directory) const;
  [[nodiscard]] std::string real_path(const std::filesystem::path& directory) const;
  [[nodiscard]] std::vector<std::string> mounted_in(const PodFiles& pod) const;
  void own(const PodFiles& files);
  void disown(const PodFiles& files);
  void wait();
  void look();
  void rest(core::Duration time);
  void read(std::size_t size);
  [[nodiscard]] core::Duration next_pause(std::size_t size);
  void read_event(std::string_view event);
  [[nodiscard]] const std::string* owner_of(const Marked& marked, std::string_view handle);
  [[nodiscard]] const std::string* owner_of(std::string_view path) const;
  void report();

  OnChange on_change_;
  InotifyTrees mounted_;  // what lies on other file systems
  bool mounted_open_ = false;
  os::FileDescriptor queue_;
  boost::asio::posix::stream_descriptor waiting_;  // for the queue; between two looks the reactor does not know it
  boost::asio::steady_timer timer_;
  core::Duration pause_ = pause;
  std::vector<Marked> marked_;
  std::map<std::filesystem::path, std::filesystem::path> roots_;  // and where they really are
  std::map<std::string, std::string, std::less<>> owners_;        // uid by directory
  std::set<std::string, std::less<>> handles_;                    // of the batch: each directory is looked up once
  std::set<std::string> changed_;                                 // of the batch
  std::map<std::string, Pod, std::less<>> pods_;                  // by uid
  alignas(8) std::array<char, std::size_t{64} * 1024> buffer_{};
};

}  // namespace evictd::wake
