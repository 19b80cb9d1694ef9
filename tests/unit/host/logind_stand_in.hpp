#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "host/system_bus.hpp"
#include "os/file_descriptor.hpp"

namespace evictd::test {

/// Speaks systemd-logind's interface on a real bus, as far as delay locks go, and does what a test tells it: what the
/// real one would not do on demand.
class LogindStandIn {
 public:
  explicit LogindStandIn(const SystemBus& bus, std::chrono::microseconds inhibit_delay = std::chrono::seconds{5});

  /// Sets PreparingForShutdown and says so.
  void prepare_for_shutdown(bool preparing);
  /// As if its configuration had been read anew.
  void set_inhibit_delay(std::chrono::microseconds delay) { delay_ = delay.count(); }
  /// From now on calls are left without an answer.
  void be_silent(bool silent) { silent_ = silent; }
  /// From now on nobody gets a lock.
  void refuse(bool refuse) { refuses_ = refuse; }

  /// How many of the locks that were given are held.
  [[nodiscard]] std::size_t locks() const;
  /// "WHAT/WHO/MODE" of every lock that was asked for.
  [[nodiscard]] std::vector<std::string> asked() const;

 private:
  bool answer(sd_bus_message* message);
  void give_lock(sd_bus_message* message);

  std::atomic<std::int64_t> delay_;  // µs
  std::atomic<bool> preparing_ = false;
  std::atomic<bool> silent_ = false;
  std::atomic<bool> refuses_ = false;
  mutable std::mutex mutex_;
  std::vector<os::FileDescriptor> given_;  // the other ends
  std::vector<std::string> asked_;
  BusPeer peer_;  // its thread uses all of the above
};

/// The part of systemd that logind and evictd call: units that load, jobs that are never done, and signals to units.
class SystemdStandIn {
 public:
  /// `kill`: what KillUnit does.
  SystemdStandIn(const SystemBus& bus, std::function<void(const std::string& unit, int signal)> kill);

  /// From now on StartUnit fails.
  void refuse_jobs(bool refuse) { refuses_ = refuse; }
  /// The units that were to be started.
  [[nodiscard]] std::vector<std::string> started() const;
  /// The last job is done.
  void finish_job();

 private:
  bool answer(sd_bus_message* message);

  std::function<void(const std::string&, int)> kill_;
  std::atomic<bool> refuses_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> started_;
  BusPeer peer_;
};

}  // namespace evictd::test
