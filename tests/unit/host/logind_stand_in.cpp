#include "host/logind_stand_in.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "host/login1.hpp"
#include "testbed/failure.hpp"

namespace evictd::test {

namespace {

using host::login1_manager;
using host::login1_path;
constexpr auto systemd1_path = "/org/freedesktop/systemd1";
constexpr auto systemd1_manager = "org.freedesktop.systemd1.Manager";
constexpr auto job_path = "/org/freedesktop/systemd1/job/1";

}  // namespace

LogindStandIn::LogindStandIn(const SystemBus& bus, std::chrono::microseconds inhibit_delay)
    : delay_{inhibit_delay.count()},
      peer_{bus.address(), "org.freedesktop.login1", login1_path,
            [this](sd_bus_message* message) { return answer(message); }} {}

void LogindStandIn::prepare_for_shutdown(bool preparing) {
  preparing_ = preparing;
  peer_.with_bus([&](sd_bus* bus) {
    sd_bus_emit_signal(bus, login1_path, login1_manager, "PrepareForShutdown", "b", static_cast<int>(preparing));
  });
}

bool LogindStandIn::answer(sd_bus_message* message) {
  if (silent_) return true;
  if (is_call(message, login1_manager, "Inhibit")) {
    give_lock(message);
    return true;
  }
  const auto property = property_asked_for(message);
  if (property == "InhibitDelayMaxUSec")
    return sd_bus_reply_method_return(message, "v", "t", static_cast<std::uint64_t>(delay_)) >= 0;
  if (property == "PreparingForShutdown")
    return sd_bus_reply_method_return(message, "v", "b", static_cast<int>(preparing_)) >= 0;
  return false;
}

void LogindStandIn::give_lock(sd_bus_message* message) {
  const char* what = nullptr;
  const char* who = nullptr;
  const char* why = nullptr;
  const char* mode = nullptr;
  sd_bus_message_read(message, "ssss", &what, &who, &why, &mode);
  const std::lock_guard lock{mutex_};
  asked_.push_back(fmt::format("{}/{}/{}", what, who, mode));
  if (refuses_) {
    sd_bus_reply_method_errorf(message, "org.freedesktop.login1.OperationInProgress", "The operation is under way");
    return;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) testbed::fail_errno("pipe2");
  given_.emplace_back(ends[0]);
  const os::FileDescriptor theirs{ends[1]};
  sd_bus_reply_method_return(message, "h", theirs.get());
}

/// A pipe that nobody can write to any more says so.
std::size_t LogindStandIn::locks() const {
  const std::lock_guard lock{mutex_};
  return static_cast<std::size_t>(std::ranges::count_if(given_, [](const os::FileDescriptor& end) {
    pollfd state{.fd = end.get(), .events = POLLIN, .revents = 0};
    return ::poll(&state, 1, 0) == 0 || (state.revents & POLLHUP) == 0;
  }));
}

std::vector<std::string> LogindStandIn::asked() const {
  const std::lock_guard lock{mutex_};
  return asked_;
}

SystemdStandIn::SystemdStandIn(const SystemBus& bus, std::function<void(const std::string&, int)> kill)
    : kill_{std::move(kill)},
      peer_{bus.address(), "org.freedesktop.systemd1", systemd1_path,
            [this](sd_bus_message* message) { return answer(message); }} {}

bool SystemdStandIn::answer(sd_bus_message* message) {
  if (is_call(message, systemd1_manager, "Subscribe")) return sd_bus_reply_method_return(message, nullptr) >= 0;
  if (property_asked_for(message) == "LoadState") return sd_bus_reply_method_return(message, "v", "s", "loaded") >= 0;
  if (is_call(message, systemd1_manager, "KillUnit")) {
    const char* unit = nullptr;
    const char* who = nullptr;
    int signal = 0;
    sd_bus_message_read(message, "ssi", &unit, &who, &signal);
    kill_(unit, signal);
    return sd_bus_reply_method_return(message, nullptr) >= 0;
  }
  if (is_call(message, systemd1_manager, "StartUnit")) {
    const char* unit = nullptr;
    sd_bus_message_read(message, "ss", &unit, nullptr);
    const std::lock_guard lock{mutex_};
    started_.emplace_back(unit);
    if (refuses_)
      return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.TransactionIsDestructive", "Not now") >= 0;
    return sd_bus_reply_method_return(message, "o", job_path) >= 0;
  }
  return false;
}

std::vector<std::string> SystemdStandIn::started() const {
  const std::lock_guard lock{mutex_};
  return started_;
}

void SystemdStandIn::finish_job() {
  const auto units = started();
  if (units.empty()) testbed::fail("no job was ever asked for");
  peer_.with_bus([&](sd_bus* bus) {
    sd_bus_emit_signal(bus, systemd1_path, systemd1_manager, "JobRemoved", "uoss", 1U, job_path, units.back().c_str(),
                       "done");
  });
}

}  // namespace evictd::test
