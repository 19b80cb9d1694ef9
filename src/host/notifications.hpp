#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/duration.hpp"
#include "host/notify_socket.hpp"

namespace evictd::host {

/// What systemd is to be told, in the order of what matters: the watchdog, then what must get through (READY, STOPPING,
/// descriptors), then the newest status. Nothing here waits for PID 1; flush() says when to try again.
///
/// A status is sent once a second at most, and only when systemd has read everything before it: so no status fills the
/// socket's queue, and what matters finds room there. A watchdog message that systemd has not read yet counts when it
/// is read, so no second one is sent behind it.
///
/// On one thread.
class Notifications {
 public:
  static constexpr core::Duration status_interval = std::chrono::seconds(1);
  static constexpr core::Duration retry_interval = std::chrono::milliseconds(100);

  /// Without a socket nothing is sent, and nothing waits.
  explicit Notifications(std::optional<NotifySocket> socket) : socket_{std::move(socket)} {}
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;
  ~Notifications();

  void watchdog();
  /// "READY=1", "STOPPING=1".
  void tell(std::string_view message);
  /// The newest one; those before it that were not sent are not sent any more.
  void status(std::string_view text);
  /// Sends a copy, which takes the place of the one of the same name.
  void store(std::string_view name, int descriptor);
  void forget(std::string_view name);

  /// Sends what can be sent now. Returns when to call again; absent: nothing waits.
  std::optional<core::Instant> flush(core::Instant now);

  class Listener {
   public:
    /// Something was added that flush() should send. Not called from within flush().
    virtual void notifications_added() = 0;

   protected:
    ~Listener() = default;
  };
  /// Who flushes, and outlives this or takes its leave: null.
  void listen(Listener* listener) { listener_ = listener; }

 private:
  struct Message {
    std::string text;
    std::string stored_name{};  // of a descriptor
    int descriptor = -1;        // ours
  };
  enum class Kind : std::uint8_t { Watchdog, Other };

  void add(Message message);
  void drop_unsent(std::string_view name);
  void news() const;
  [[nodiscard]] bool flush_watchdog();
  [[nodiscard]] bool flush_messages();
  [[nodiscard]] NotifySocket::Sent send(Kind kind, std::string_view text, int descriptor = -1);

  std::optional<NotifySocket> socket_;
  Listener* listener_ = nullptr;
  bool watchdog_ = false;
  std::deque<Message> messages_;       // bounded: one of each kind, and two for each stored name
  std::optional<std::string> status_;  // not sent yet
  core::Instant next_status_{};
  Kind last_sent_ = Kind::Other;
};

/// Those of this process, to $NOTIFY_SOCKET. An address that cannot be used is logged at the first call.
Notifications& notifications();

}  // namespace evictd::host
