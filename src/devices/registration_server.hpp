#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "core/error.hpp"
#include "devices/registration.hpp"
#include "os/unix_socket.hpp"

namespace evictd::devices {

/// Serves v1beta1.Registration: takes device plugins' registrations over to the reactor. A flood of connections or
/// calls keeps to the threads of this.
///
/// Made and destroyed on the reactor's thread, which it blocks for some milliseconds at its end.
class RegistrationServer {
 public:
  /// What becomes of a registration that is right in itself; its error is for the plugin. On the reactor.
  using Register = std::function<boost::asio::awaitable<Result<void>>(Registration)>;

  /// `longest_idle`: of a connection without a call. A plugin registers as soon as it has connected.
  RegistrationServer(boost::asio::any_io_executor reactor, os::ListeningSocket socket, Register handle,
                     std::chrono::milliseconds longest_idle = std::chrono::seconds{60});
  /// Removes the socket, unless another one stands there by now, and ends all calls.
  ~RegistrationServer();
  RegistrationServer(const RegistrationServer&) = delete;
  RegistrationServer& operator=(const RegistrationServer&) = delete;

 private:
  struct Parts;  // gRPC's headers are heavy: they stay in registration_server.cpp
  std::unique_ptr<Parts> parts_;
};

}  // namespace evictd::devices
