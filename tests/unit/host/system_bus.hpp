#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "testbed/process.hpp"

struct sd_bus;
struct sd_bus_message;

namespace evictd::test {

struct CloseBus {
  void operator()(sd_bus* bus) const;
};
/// A connection of one's own to the bus, started. Descriptors may be sent over it.
using BusConnection = std::unique_ptr<sd_bus, CloseBus>;
[[nodiscard]] BusConnection connect_to_bus(const std::string& address);

/// A real dbus-daemon of the test's own, which takes anybody for anything: its socket lies in a directory.
class SystemBus {
 public:
  /// Started. `directory` has to outlive it.
  explicit SystemBus(const std::filesystem::path& directory);

  /// Why there can be none here; nothing: there can.
  [[nodiscard]] static std::optional<std::string> missing();

  /// "unix:path=…"
  [[nodiscard]] std::string address() const;
  /// For the environment of a program that is to find it: "DBUS_SYSTEM_BUS_ADDRESS=…".
  [[nodiscard]] std::string variable() const { return "DBUS_SYSTEM_BUS_ADDRESS=" + address(); }

  /// SIGKILL: everybody loses the connection.
  void stop();
  /// The same address again.
  void start();

 private:
  std::filesystem::path directory_;
  std::optional<testbed::Process> daemon_;
};

/// Somebody on a bus: a connection with a thread of its own that answers calls. Fails where it cannot have the name.
class BusPeer {
 public:
  /// Answers a call (by sd_bus_reply_method_return and the like) and returns true, or returns false: then the caller
  /// learns that there is no such method. On the peer's thread.
  using Handler = std::function<bool(sd_bus_message*)>;

  /// `path`: calls to it and to everything below come to `handler`.
  BusPeer(const std::string& address, const char* name, const char* path, Handler handler);
  BusPeer(const BusPeer&) = delete;
  BusPeer& operator=(const BusPeer&) = delete;
  ~BusPeer();

  /// Uses the connection while its thread does not; not from within the handler.
  void with_bus(const std::function<void(sd_bus*)>& use);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether it is a call of this method.
[[nodiscard]] bool is_call(sd_bus_message* message, const char* interface, const char* member);
/// The property that a call of Properties.Get asks for; nothing: it is another call.
[[nodiscard]] std::optional<std::string> property_asked_for(sd_bus_message* message);

}  // namespace evictd::test
