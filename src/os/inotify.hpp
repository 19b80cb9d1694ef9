#pragma once
#include <sys/inotify.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/duration.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"

namespace evictd::os {

/// An inotify(7) queue, read on the reactor. Destroying it closes all watches.
class Inotify {
 public:
  struct Event {
    int watch = -1;          ///< as add() gave it; -1 where the queue overflowed
    std::uint32_t mask = 0;  ///< IN_Q_OVERFLOW: events were lost
    std::string_view name;   ///< in the watched directory; valid during the call
  };
  /// Called on the reactor.
  class Listener {
   public:
    virtual void on_event(const Event& event) = 0;
    /// After the events that came together.
    virtual void on_batch_end() = 0;

   protected:
    ~Listener() = default;
  };

  /// After each batch, which is all that the kernel has gathered, reading rests for `pause` and nothing wakes the
  /// reactor: whoever writes without a break must not keep it busy. The listener must outlive this.
  Inotify(const boost::asio::any_io_executor& reactor, core::Duration pause, Listener& listener);
  Inotify(const Inotify&) = delete;
  Inotify& operator=(const Inotify&) = delete;
  ~Inotify();

  /// EMFILE where there are no more inotify instances (fs.inotify.max_user_instances) or descriptors. To be called
  /// once.
  [[nodiscard]] FileResult<void> open();

  /// Watches a directory; one that is watched already keeps its number. ENOSPC: fs.inotify.max_user_watches is reached.
  [[nodiscard]] FileResult<int> add(const std::filesystem::path& directory, std::uint32_t mask) {
    return add(directory.c_str(), mask, directory.native());
  }
  /// The same for one that is open. `directory`: as errors name it.
  [[nodiscard]] FileResult<int> add(const FileDescriptor& opened, std::uint32_t mask, std::string_view directory);
  void remove(int watch);

  /// The same queue once more, for a thread that adds watches where a disk may not answer. Null where there are no
  /// descriptors left.
  [[nodiscard]] std::shared_ptr<const FileDescriptor> duplicate();
  /// Adds a watch to such a duplicate. May block for ever.
  [[nodiscard]] static FileResult<int> add_to(const FileDescriptor& queue, const std::filesystem::path& directory,
                                              std::uint32_t mask);

 private:
  [[nodiscard]] FileResult<int> add(const char* path, std::uint32_t mask, std::string_view directory);
  void wait();
  void rest();
  void read_all();
  void tell(std::size_t size);

  FileDescriptor queue_;
  boost::asio::posix::stream_descriptor waiting_;  // the same, while it is waited for
  boost::asio::steady_timer timer_;
  core::Duration pause_;
  Listener& listener_;
  alignas(inotify_event) std::array<char, std::size_t{64} * 1024> buffer_{};
};

}  // namespace evictd::os
