#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/logind_stand_in.hpp"
#include "host/system_bus.hpp"
#include "os/file_descriptor.hpp"
#include "testbed/process.hpp"
#include "testbed/testbed.hpp"

namespace integration {

/// A real systemd-logind on a bus of the test's own, with a stand-in for systemd, which is not told to turn anything
/// off. What logind keeps below /run/systemd lies in the testbed's directory: it has a mount namespace of its own.
class Logind {
 public:
  /// `inhibit_delay`: for how long it lets a shutdown wait.
  Logind(testbed::Testbed& testbed, std::chrono::seconds inhibit_delay);

  /// Why there can be none here; nothing: there can.
  [[nodiscard]] static std::optional<std::string> missing();

  /// logind begins to shut the machine down, as `systemctl poweroff` has it do.
  void power_off();
  /// A delay lock of somebody else's: it is held for as long as the descriptor is open.
  [[nodiscard]] evictd::os::FileDescriptor take_lock(const char* who) const;
  /// "WHO WHAT MODE" of everybody who holds a lock.
  [[nodiscard]] std::vector<std::string> inhibitors() const;
  [[nodiscard]] bool preparing_for_shutdown() const;
  /// Where it looks for additions to its configuration.
  [[nodiscard]] std::filesystem::path drop_ins() const { return state_ / "logind.conf.d"; }

  [[nodiscard]] const evictd::test::SystemBus& bus() const { return bus_; }
  [[nodiscard]] evictd::test::SystemdStandIn& systemd() { return *systemd_; }

  /// Everybody on the bus is thrown off, and logind and systemd come back to the next one.
  void restart_bus();
  /// logind alone, as `systemctl restart systemd-logind` does it: it finds the locks that it gave.
  void restart();

 private:
  void start();

  testbed::Testbed& testbed_;
  std::filesystem::path state_;
  evictd::test::SystemBus bus_;
  std::optional<testbed::Process> logind_;
  std::optional<evictd::test::SystemdStandIn> systemd_;  // whose thread may signal logind
};

}  // namespace integration
