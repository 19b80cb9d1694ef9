#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "os/file_descriptor.hpp"

namespace evictd::rpc {

/// What a client says first.
enum class Greeting : std::uint8_t {
  Http2,  ///< the connection preface of RFC 9113, section 3.4
  Tls,    ///< a handshake record
};

/// A listening socket and what becomes of its connections.
struct Listener {
  std::string name;           ///< for events and errors: "evictd.sock", "api.tcp"
  os::FileDescriptor socket;  ///< non-blocking, it listens
  Greeting greeting = Greeting::Http2;
  std::move_only_function<void(os::FileDescriptor)> let_in;  ///< on the acceptor's thread, as the next
  /// From time to time once somebody was let in, for as long as it says true. Empty: there is nothing to look after.
  std::move_only_function<bool()> look_after{};
};

struct AcceptorLimits {
  /// Open at the same time, on each listener. More are closed at once.
  std::size_t connections = 1088;
  /// That have not greeted yet, on each listener. The oldest is closed for a new one: whoever says nothing keeps nobody
  /// out.
  std::size_t silent = 128;
  /// For the greeting. A client sends it at once.
  std::chrono::milliseconds patience{5000};
  /// Between two calls of Listener::look_after, and between two looks for clients that have stopped reading.
  std::chrono::milliseconds between_looks{30'000};
  /// How long a client may take nothing while its socket is full. Then it is cut off.
  std::chrono::milliseconds unread{30'000};
};

/// Takes connections and lets those in that speak the right language, on a thread of its own: a flood of them is no
/// affair of the reactor. The log is told when connections are refused, cut off or cannot be taken, once a minute.
///
/// gRPC 1.51 takes as many connections as there are descriptors and keeps those that say nothing, for ever where it is
/// handed a descriptor. So it is handed only what has greeted.
///
/// Who has stopped reading is cut off, where the listener has its connections looked after.
class Acceptor {
 public:
  Acceptor(std::vector<Listener> listeners, AcceptorLimits limits);
  /// Ends the thread, closes the listeners and who has not greeted. No connection is accepted any more.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::rpc
