#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/side_thread.hpp"
#include "core/duration.hpp"
#include "core/error.hpp"
#include "os/file_descriptor.hpp"
#include "os/file_error.hpp"
#include "os/inotify.hpp"
#include "prekill/socket_list.hpp"

namespace evictd::prekill {

struct SocketDirectoryOptions {
  std::string path;
  /// Looking again for a directory that is not there, or cannot be watched.
  core::Duration interval = std::chrono::seconds(10);
  /// Between two looks at one that changes without a break.
  core::Duration pause = std::chrono::milliseconds(100);
  /// A disk that takes longer over a look or a connection does not answer: it is not asked, until it does.
  core::Duration patience = std::chrono::seconds(1);
};

/// Knows which sockets are in a directory, and connects to them, by a thread of its own: the reactor waits for no disk.
/// It is told of changes by inotify. On the reactor; must be destroyed before the io_context.
class SocketDirectory final : private os::Inotify::Listener {
 public:
  /// Begins to look. Throws std::system_error where no thread can be had.
  SocketDirectory(const boost::asio::any_io_executor& reactor, SocketDirectoryOptions options);
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;
  ~SocketDirectory() = default;

  /// As they were at the last look; none while its disk does not answer. Costs nothing.
  [[nodiscard]] const std::vector<std::string>& names() const;

  using Connections = std::vector<Result<os::FileDescriptor>>;
  /// Connects to those of names(): a result for each, in their order. Nothing: its disk did not answer until then. May
  /// be cancelled; this may go meanwhile.
  [[nodiscard]] boost::asio::awaitable<std::optional<Connections>> connect(std::vector<std::string> names,
                                                                           core::Instant until);

 private:
  struct Found {
    os::FileResult<int> watch = -1;
    os::FileResult<SocketList> sockets;
  };

  void on_event(const os::Inotify::Event& event) override;
  void on_batch_end() override;
  void look();
  void looked(Found& found);
  /// Says what is wrong, where that is something else than the last time; empty: nothing.
  void say(const std::string& wrong);
  void run(std::move_only_function<void()> work, std::move_only_function<void()> done);

  boost::asio::any_io_executor reactor_;
  SocketDirectoryOptions options_;
  os::Inotify inotify_;
  boost::asio::steady_timer timer_;
  int watch_ = -1;
  bool changed_ = false;     // in this batch
  bool looking_ = false;     // the thread does
  bool look_again_ = false;  // it changed meanwhile
  bool lost_ = false;        // a watch ended meanwhile
  std::vector<std::string> names_;
  std::string wrong_;
  int at_work_ = 0;                  // of what the thread was given, not done yet
  core::Instant last_sign_of_life_;  // of the thread, while it has something to do
  std::unique_ptr<async::SideThread> thread_;
};

}  // namespace evictd::prekill
