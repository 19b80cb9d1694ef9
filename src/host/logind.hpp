#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "host/bus.hpp"
#include "host/inhibitor_lock.hpp"

namespace evictd::host {

struct LogindOptions {
  core::Duration needed{};                                      ///< for how long a shutdown has to wait for us
  bool raise_inhibit_delay = false;                             ///< whether logind is told so where it waits less
  std::filesystem::path drop_ins{};                             ///< where it looks for additions to its configuration
  core::Duration reconnect_interval = std::chrono::seconds(1);  ///< as the kubelet has it
};

/// How evictd stands with logind.
struct LogindStatus {
  bool connected = false;
  bool holds_lock = false;
  core::Duration inhibit_delay{};  ///< for how long it lets a shutdown wait (InhibitDelayMaxUSec); 0: unknown
  std::string error{};             ///< why the shutdown will not wait for us, or not long enough; one line
};

/// systemd-logind's part in a shutdown of the node, over the system bus. It tells of shutdowns, and lets them wait for
/// whoever holds a delay lock (systemd.io, "Inhibitor Locks"). Lost connections are made anew for ever. On the reactor;
/// nothing blocks it.
class Logind {
 public:
  /// Called on the reactor.
  class Listener {
   public:
    /// A shutdown is pending, or not (any more). Called at every connection, and whenever it changes.
    virtual void shutdown_pending(bool pending) = 0;
    /// Something is wrong, or all is well (again). Each error once, until it changes.
    virtual void logind_changed(const LogindStatus& status) = 0;

   protected:
    ~Listener() = default;
  };

  /// `inherited`: the lock that an earlier evictd took, if any. The listener must outlive this.
  Logind(boost::asio::any_io_executor reactor, LogindOptions options, InhibitorLock inherited, Listener& listener);

  /// Until stop().
  [[nodiscard]] boost::asio::awaitable<void> run();
  void stop();

  /// Asks for a new lock, which takes the place of the one that is held; does nothing while there is no connection. One
  /// that is refused, or does not come in time, is asked for again until release_lock(), as often as a lost bus.
  void take_lock();
  /// Lets go of it; also of one that is on its way.
  void release_lock();

  [[nodiscard]] LogindStatus status() const;

 private:
  boost::asio::awaitable<Error> session();
  boost::asio::awaitable<Result<void>> look();
  boost::asio::awaitable<Result<core::Duration>> inhibit_delay();
  boost::asio::awaitable<Result<core::Duration>> raise_inhibit_delay();
  boost::asio::awaitable<Result<void>> write_drop_in(std::filesystem::path file, std::string text);
  boost::asio::awaitable<Result<BusMessage>> property(const char* name);
  boost::asio::awaitable<void> ask_for_lock();
  boost::asio::awaitable<void> sleep(core::Duration duration);
  [[nodiscard]] Result<void> watch();
  void lose(const Error& error);
  void judge_delay(const Result<core::Duration>& delay);
  void report();

  boost::asio::any_io_executor reactor_;
  LogindOptions options_;
  Listener& listener_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<Bus> bus_;  // of the session
  InhibitorLock lock_;
  bool wants_lock_ = false;
  bool asking_ = false;  // a question for a lock is under way
  bool connected_ = false;
  bool stopping_ = false;
  core::Duration inhibit_delay_{};
  std::optional<bool> signalled_;  // in this session, last
  std::string lost_;               // why this session is over
  std::string connection_error_ = "systemd-logind has not answered yet";
  std::string lock_error_;               // why there is no lock
  std::string delay_error_;              // what is wrong with the delay
  std::optional<std::string> reported_;  // absent: nothing yet
};

}  // namespace evictd::host
