#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "core/duration.hpp"
#include "core/error.hpp"

struct sd_bus_message;

namespace evictd::host {

/// A message of the bus, shared. Reading moves a place in it.
using BusMessage = std::shared_ptr<sd_bus_message>;

/// Whom a call goes to.
struct BusMethod {
  const char* destination;
  const char* path;
  const char* interface;
  const char* member;
};

/// A connection to the system bus: where DBUS_SYSTEM_BUS_ADDRESS says, or the usual socket (sd_bus_open_system(3)).
/// Driven by the reactor, on which everything here happens; no call blocks.
class Bus {
 public:
  /// Error: no bus listens there. Whether the bus takes us shows later: `lost` is called once, when the connection is
  /// gone or never came about, from the reactor and not if this object has gone before.
  [[nodiscard]] static Result<std::unique_ptr<Bus>> connect(boost::asio::any_io_executor reactor,
                                                            std::move_only_function<void(const Error&)> lost);
  /// Calls that wait for an answer get an error.
  ~Bus();
  Bus(const Bus&) = delete;
  Bus& operator=(const Bus&) = delete;

  /// A call to be filled in (sd_bus_message_append) and sent.
  [[nodiscard]] Result<BusMessage> method(const BusMethod& method) const;

  /// The answer. Error: none came in time, the bus went, or what the other side says: "NAME: message".
  [[nodiscard]] boost::asio::awaitable<Result<BusMessage>> call(BusMessage request,
                                                                core::Duration timeout = std::chrono::seconds(5));

  /// Calls back for each signal that fits (D-Bus specification, "Match Rules"). The bus knows of it before it sees any
  /// later call of ours.
  [[nodiscard]] Result<void> match(const std::string& rule, std::function<void(sd_bus_message*)> on_signal);

 private:
  struct Connection;
  explicit Bus(std::shared_ptr<Connection> connection) : connection_{std::move(connection)} {}

  std::shared_ptr<Connection> connection_;  // shared with what the reactor waits for
};

/// What a function of sd-bus says by its negative result: "WHAT: No such file or directory".
[[nodiscard]] std::unexpected<Error> bus_error(int result, const std::string& what);

}  // namespace evictd::host
